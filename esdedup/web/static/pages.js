// What makes the pages better where scripts run; without it, all of them work.
"use strict";

const POLL_MS = 60_000;
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

// Times in the reader's zone. Relative times keep their text and get an exact one on hover, others the reverse.
function rewriteTimes() {
  // As the server writes them.
  const [year, month, day, hour, minute] = ["numeric", "short", "numeric", "2-digit", "2-digit"];
  const format = new Intl.DateTimeFormat(language, { year, month, day, hour, minute, hourCycle: "h23" });
  const zone = format.resolvedOptions().timeZone;
  if (zone === "UTC") return;
  for (const time of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    if (time.classList.contains("minute")) time.textContent = format.format(moment);
    else time.title = format.format(moment);
  }
  for (const note of document.querySelectorAll(".utc")) note.textContent = words.zone.replace("{zone}", zone);
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

rewriteTimes();
useKeys();
for (const form of document.querySelectorAll("form[method=get]")) form.addEventListener("formdata", omitEmpty);
const list = document.querySelector("[data-live]");
if (list) watch(list);
