// Enhances the pages, all of which also work without scripts.
"use strict";

const POLL_MS = 60_000;
const PAUSE_MS = 200;
const KEYS_OFF = "esdedup-keys-off";
// Null if the browser blocks storage.
const storage = (() => {
  try {
    return localStorage;
  } catch {
    return null;
  }
})();
const settings = document.body.dataset;
const language = document.documentElement.lang;

// Stores the reader's time zone, which the server uses for times and days, in a cookie, and reloads the page once.
function storeZone() {
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const cookie = `esdedup_time_zone=${zone}`;
  const isStored = () => document.cookie.split("; ").includes(cookie);
  if (!zone || isStored()) return;
  document.cookie = `${cookie}; path=${settings.path}; max-age=31536000; samesite=lax`;
  // If the browser refuses cookies, the server's zone stays in use.
  if (isStored() && zone !== settings.zone) location.reload();
}

// The titles of rows, between which j and k move.
const rows = () => [...document.querySelectorAll(".row h2 a, .row h3 a")];

function moveBy(step) {
  const links = rows();
  const here = links.indexOf(document.activeElement?.closest(".row")?.querySelector("h2 a, h3 a"));
  const next = here < 0 ? (step > 0 ? 0 : links.length - 1) : here + step;
  links[next]?.focus();
  links[next]?.closest(".row").scrollIntoView({ block: "nearest" });
}

const actions = {
  "/": () => document.getElementById("q")?.select(),
  j: () => moveBy(1),
  k: () => moveBy(-1),
  o: () => document.activeElement?.closest(".row")?.querySelector("h2 a, h3 a")?.click(),
  "?": () => document.getElementById("keys").showModal(),
};

// Single-character keys can be switched off, because they interfere with dictation.
function useKeys() {
  const dialog = document.getElementById("keys");
  const [button, choice] = [document.getElementById("show-keys"), dialog.querySelector("input")];
  button.hidden = false;
  button.addEventListener("click", actions["?"]);
  choice.checked = !storage?.getItem(KEYS_OFF);
  choice.addEventListener("change", () =>
    choice.checked ? storage?.removeItem(KEYS_OFF) : storage?.setItem(KEYS_OFF, "1"),
  );
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("textarea, select, [contenteditable], input:not([type=radio], [type=checkbox])");
    if (isTyping || dialog.open || !choice.checked || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  });
}

// Removes empty fields from addresses.
function omitEmpty({ formData }) {
  const given = [...formData].filter(([, value]) => value !== "");
  for (const name of [...formData.keys()]) formData.delete(name);
  for (const [name, value] of given) formData.append(name, value);
}

// When typing pauses, offers the names of sources that contain the typed text.
function offerNames(input) {
  let waiting, requests = 0;
  const offer = async () => {
    const number = (requests += 1);
    const answer = await fetch(`${input.dataset.names}?${new URLSearchParams({ containing: input.value })}`).catch(() => null);
    if (!answer?.ok || number !== requests) return;
    const { names } = await answer.json();
    input.list.replaceChildren(...names.map((name) => new Option(name, name)));
  };
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(offer, PAUSE_MS);
  });
}

// While the page is visible, shows how many articles have been added to the list since the page was loaded.
function watch(list) {
  const note = document.getElementById("live");
  const poll = async () => {
    if (document.hidden) return;
    const answer = await fetch(list.dataset.live).catch(() => null);
    if (!answer?.ok) return;
    const more = (await answer.json()).total_articles - Number(list.dataset.total);
    if (more <= 0) return;
    note.hidden = false;
    note.querySelector("a").textContent = settings.more.replace("{number}", more.toLocaleString(language));
  };
  setInterval(poll, POLL_MS);
  document.addEventListener("visibilitychange", poll);
}

storeZone();
useKeys();
for (const form of document.querySelectorAll("form[method=get]")) form.addEventListener("formdata", omitEmpty);
for (const input of document.querySelectorAll("[data-names]")) offerNames(input);
const list = document.querySelector("[data-live]");
if (list) watch(list);
