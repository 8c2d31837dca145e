// Keeps the part of the page with the id "live" current: after each change on the server, the page is requested again
// and that part is replaced. Open details, the position and the focus remain. A box of output stays at its end unless the reader has left it.
"use strict";

const part = document.getElementById("live");
const connection = document.getElementById("connection");
let running = false;
let again = false;
let retry = 0;
let pause = 1000;
let stale = false;

function say(text) { connection.textContent = text; connection.className = text === "live" ? "good" : "bad"; }

function keyOf(element) {
  const summary = element.querySelector("summary");
  return summary ? summary.textContent : "";
}

function nameOf(box) { return box.getAttribute("aria-label"); }

function atEnd(box) { return box.scrollHeight - box.scrollTop - box.clientHeight < 4; }

async function refresh() {
  if (running) { again = true; return; }
  running = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.status === 404) { say("The job is gone: the page shows its last state."); return; }
    if (!answer.ok) throw new Error(String(answer.status));
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const id of ["live", "summary"]) replace(id, next);
    if (part && next.getElementById("live")) follow(next.getElementById("live").dataset.every);
    say("live");
  } catch (error) {
    say("The page cannot be updated: the server does not answer.");
    clearTimeout(retry);
    retry = setTimeout(refresh, later(5000));
  } finally {
    running = false;
  }
  if (again) { again = false; refresh(); }
}

let every = 0;
let timer = 0;

function follow(seconds) {
  if (every === seconds) return;
  every = seconds;
  clearInterval(timer);
  if (every) timer = setInterval(() => { if (!document.hidden) refresh(); }, 1000 * every);
}

function replace(id, next) {
  const here = document.getElementById(id);
  const there = next.getElementById(id);
  if (!here || !there || here.innerHTML === there.innerHTML) return;
  const open = new Set([...here.querySelectorAll("details[open]")].map(keyOf));
  const focus = here.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  for (const details of there.querySelectorAll("details")) details.open = open.has(keyOf(details));
  const above = new Map([...here.querySelectorAll(".output")].filter((box) => !atEnd(box)).map((box) => [nameOf(box), box.scrollTop]));
  here.replaceChildren(...there.childNodes);
  for (const box of here.querySelectorAll(".output")) box.scrollTop = above.get(nameOf(box)) ?? box.scrollHeight;
  if (focus) [...here.querySelectorAll("a")].find((link) => link.getAttribute("href") === focus)?.focus();
}

function filter() {
  const form = document.getElementById("filter");
  if (!form) return;
  const show = () => {
    const chosen = new URLSearchParams(new FormData(form));
    history.replaceState(null, "", "?" + chosen.toString());
    refresh();
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => { event.preventDefault(); show(); });
}

// Between a half and all of so many milliseconds, so that not all pages come back at once.
function later(most) { return most * (1 + Math.random()) / 2; }

let changes = null;
let waiting = 0;

// A page that nobody sees has no connection: a browser has only six to one server, for all of its pages.
function connect() {
  clearTimeout(waiting);
  changes?.close();
  if (document.hidden) { stale = true; return; }
  changes = new EventSource("/changes");
  changes.addEventListener("changed", refresh);
  changes.addEventListener("open", () => {
    say("live");
    pause = 1000;
    if (stale) refresh();
    stale = true;
  });
  changes.addEventListener("error", () => {
    say("The connection is lost. The page shows the last state.");
    stale = true;
    if (changes.readyState !== EventSource.CLOSED) return; // the browser connects again
    waiting = setTimeout(connect, later(pause));
    pause = Math.min(2 * pause, 30000);
  });
}

if (part) {
  connect();
  document.addEventListener("visibilitychange", connect);
  for (const box of part.querySelectorAll(".output")) box.scrollTop = box.scrollHeight;
  follow(part.dataset.every);
  filter();
}
