// The studio works without this script; with it, changes show at once, progress moves, and files can be dropped.
// No inline handlers, no eval, no libraries: the page's policy allows none.
"use strict";
document.documentElement.classList.add("js");

// The page that is open, whatever place in it is meant: the part behind # is the browser's own.
const address = (url) => url.split("#")[0];
let shown = address(location.href);

// Take what a page says into the one that is open, and keep the place: the same field stays focused.
function show(text, url) {
  const next = new DOMParser().parseFromString(text, "text/html");
  if (!next.getElementById("page")) { location.assign(url || location.href); return; }
  const focused = document.activeElement && document.activeElement.id;
  document.getElementById("page").replaceWith(next.getElementById("page"));
  document.title = next.title;
  if (url && address(url) !== address(location.href)) history.pushState(null, "", url);
  shown = address(location.href);
  const again = focused && document.getElementById(focused);
  if (again) again.focus({ preventScroll: true });
  const trouble = document.getElementById("problem");
  if (trouble) trouble.scrollIntoView({ block: "nearest" });
  steps();
  watch();
}

async function load(url) {
  const answer = await fetch(url, { headers: { Accept: "text/html" } });
  if (answer.ok || answer.status === 422) show(await answer.text(), answer.url);
}

async function send(form) {
  const fields = new URLSearchParams(new FormData(form));
  const action = form.getAttribute("action") || location.pathname;
  document.getElementById("main").setAttribute("aria-busy", "true");
  if ((form.getAttribute("method") || "get").toLowerCase() === "get") return load(action + "?" + fields);
  const answer = await fetch(action, { method: "POST", body: fields, headers: { Accept: "text/html" } });
  show(await answer.text(), answer.redirected ? answer.url : null);
}

document.addEventListener("change", (event) => {
  const form = event.target.form;
  if (form && form.hasAttribute("data-live")) send(form);
});

// A range says its value while it is moved: <output for="ID">.
document.addEventListener("input", (event) => {
  if (event.target.type !== "range") return;
  const values = (event.target.dataset.values || "").split(" "), field = event.target.form && event.target.form.querySelector("input[inputmode]");
  if (event.target.dataset.values) event.target.setAttribute("aria-valuetext", values[event.target.value]);
  if (event.target.dataset.values && field) field.value = values[event.target.value];
  for (const shown of document.querySelectorAll('output[for="' + CSS.escape(event.target.id) + '"]')) shown.textContent = event.target.value;
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.hasAttribute("data-upload")) { event.preventDefault(); upload(form); }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = button.dataset.copied;
});

// Uploads tell how far they are.
function upload(form) {
  const request = new XMLHttpRequest(), bar = form.querySelector("progress"), button = form.querySelector("button");
  bar.hidden = false; button.disabled = true; button.textContent = form.dataset.sending;
  request.upload.addEventListener("progress", (event) => { if (event.lengthComputable) bar.value = event.loaded / event.total; });
  request.addEventListener("load", () => show(request.responseText, request.status === 422 ? null : request.responseURL));
  request.addEventListener("error", () => location.reload());
  request.open("POST", form.action);
  request.setRequestHeader("Accept", "text/html");
  request.send(new FormData(form));
}

for (const kind of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(kind, (event) => {
    const place = event.target.closest && event.target.closest("[data-drop]");
    if (kind !== "dragleave") event.preventDefault();
    if (!place) return;
    place.classList.toggle("over", kind === "dragover");
    if (kind === "drop" && event.dataTransfer.files.length) {
      const form = place.querySelector("form");
      form.querySelector("input[type=file]").files = event.dataTransfer.files;
      upload(form);
    }
  });
}

// While something is being worked on, ask how far it is; when it is over, show the page again.
let timer = 0;
function watch() {
  clearTimeout(timer);
  const waiting = [...document.querySelectorAll("[data-job]")];
  if (!waiting.length) return;
  timer = setTimeout(async () => {
    let told;
    try { told = (await (await fetch("/jobs.json")).json()).jobs; } catch { timer = setTimeout(watch, 3000); return; }
    const open = new Map(told.filter((job) => ["waiting", "running", "working"].includes(job.state)).map((job) => [job.id, job]));
    if (waiting.some((place) => !open.has(place.dataset.job))) { load(location.href); return; }
    for (const place of waiting) {
      const job = open.get(place.dataset.job), bar = place.querySelector("progress");
      place.querySelector("[data-says]").textContent = job.says;
      if (job.share) bar.value = job.share;
    }
    watch();
  }, 500);
}

// On a narrow screen the current step is brought into view.
function steps() {
  const now = document.querySelector(".steps [aria-current]"), nav = now && now.closest("nav");
  if (nav && nav.scrollWidth > nav.clientWidth) nav.scrollLeft = now.offsetLeft - nav.offsetLeft - 16;
}

// Going to a place in the page, as "Skip to the content" does, is no going back.
window.addEventListener("popstate", () => { if (address(location.href) !== shown) load(location.href); });
steps();
watch();
