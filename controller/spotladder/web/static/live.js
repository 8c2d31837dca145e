// Keeps the part of the page with the id "live" current: after each change on the server, the page is requested again
// and that part is replaced. Open details, the position and the focus remain.
"use strict";

const connection = document.getElementById("connection");
let running = false;
let again = false;

function keyOf(element) {
  const summary = element.querySelector("summary");
  return summary ? summary.textContent : "";
}

async function refresh() {
  if (running) { again = true; return; }
  running = true;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const id of ["live", "summary"]) replace(id, next);
    connection.textContent = "live";
  } catch (error) {
    connection.textContent = "The page cannot be updated: the server does not answer.";
  } finally {
    running = false;
  }
  if (again) { again = false; refresh(); }
}

function replace(id, next) {
  const here = document.getElementById(id);
  const there = next.getElementById(id);
  if (!here || !there || here.innerHTML === there.innerHTML) return;
  const open = new Set([...here.querySelectorAll("details[open]")].map(keyOf));
  const focus = here.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  for (const details of there.querySelectorAll("details")) details.open = open.has(keyOf(details));
  here.replaceChildren(...there.childNodes);
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

if (document.getElementById("live")) {
  const changes = new EventSource("/changes");
  changes.addEventListener("changed", refresh);
  changes.addEventListener("open", () => { connection.textContent = "live"; });
  changes.addEventListener("error", () => { connection.textContent = "The connection is lost. The page shows the last state."; });
  filter();
}
