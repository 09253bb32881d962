// What makes the pages better where scripts run; without it, all of them work.
"use strict";

const POLL_MS = 60_000;
const PAUSE_MS = 200;
const KEYS_OFF = "esdedup-keys-off";
// Absent where the reader's browser keeps nothing.
const kept = (() => {
  try {
    return localStorage;
  } catch {
    return null;
  }
})();
const words = document.body.dataset;
const language = document.documentElement.lang;

// Tells the server the reader's time zone, in which it writes times, and takes days; the page is loaded again once.
function tellZone() {
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const told = `esdedup_time_zone=${zone}`;
  const isTold = () => document.cookie.split("; ").includes(told);
  if (!zone || isTold()) return;
  document.cookie = `${told}; path=${words.path}; max-age=31536000; samesite=lax`;
  // Where cookies are refused, the server's zone remains.
  if (isTold() && zone !== words.zone) location.reload();
}

// The titles of rows, which j and k go through.
const rows = () => [...document.querySelectorAll(".row h2 a, .row h3 a")];

function go(step) {
  const links = rows();
  const here = links.indexOf(document.activeElement?.closest(".row")?.querySelector("h2 a, h3 a"));
  const next = here < 0 ? (step > 0 ? 0 : links.length - 1) : here + step;
  links[next]?.focus();
  links[next]?.closest(".row").scrollIntoView({ block: "nearest" });
}

const actions = {
  "/": () => document.getElementById("q")?.select(),
  j: () => go(1),
  k: () => go(-1),
  o: () => document.activeElement?.closest(".row")?.querySelector("h2 a, h3 a")?.click(),
  "?": () => document.getElementById("keys").showModal(),
};

// Keys of one character can be switched off, since they get in the way of those who dictate.
function useKeys() {
  const dialog = document.getElementById("keys");
  const [button, choice] = [document.getElementById("show-keys"), dialog.querySelector("input")];
  button.hidden = false;
  button.addEventListener("click", actions["?"]);
  choice.checked = !kept?.getItem(KEYS_OFF);
  choice.addEventListener("change", () =>
    choice.checked ? kept?.removeItem(KEYS_OFF) : kept?.setItem(KEYS_OFF, "1"),
  );
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("textarea, select, [contenteditable], input:not([type=radio], [type=checkbox])");
    if (isTyping || dialog.open || !choice.checked || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  });
}

// Keeps fields that are left empty out of addresses.
function omitEmpty({ formData }) {
  const given = [...formData].filter(([, value]) => value !== "");
  for (const name of [...formData.keys()]) formData.delete(name);
  for (const [name, value] of given) formData.append(name, value);
}

// Offers the names of sources that contain what is typed, when typing pauses.
function offerNames(input) {
  let waiting, asked = 0;
  const offer = async () => {
    const number = (asked += 1);
    const answer = await fetch(`${input.dataset.names}?${new URLSearchParams({ containing: input.value })}`).catch(() => null);
    if (!answer?.ok || number !== asked) return;
    const { names } = await answer.json();
    input.list.replaceChildren(...names.map((name) => new Option(name, name)));
  };
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(offer, PAUSE_MS);
  });
}

// Says how many articles have come to the first page of a list since it was loaded, while somebody looks at it.
function watch(list) {
  const note = document.getElementById("live");
  const poll = async () => {
    if (document.hidden) return;
    const answer = await fetch(list.dataset.live).catch(() => null);
    if (!answer?.ok) return;
    const more = (await answer.json()).total_articles - Number(list.dataset.total);
    if (more <= 0) return;
    note.hidden = false;
    note.querySelector("a").textContent = words.more.replace("{number}", more.toLocaleString(language));
  };
  setInterval(poll, POLL_MS);
  document.addEventListener("visibilitychange", poll);
}

tellZone();
useKeys();
for (const form of document.querySelectorAll("form[method=get]")) form.addEventListener("formdata", omitEmpty);
for (const input of document.querySelectorAll("[data-names]")) offerNames(input);
const list = document.querySelector("[data-live]");
if (list) watch(list);
