"use strict";
// The review page. Everything shown comes from news pages, so it is only ever set as text, never as markup.

const KEYS = [
  ["r", "right"], ["a", "wrong_answer"], ["e", "wrong_entity"], ["m", "bad_mask"], ["p", "private_person"], ["s", "skip"],
];
const MOVES = [["u", "undo"], ["n", "next"], ["b", "back"], ["o", "mask on/off"], ["x", "boxes on/off"], ["q", "finish"]];
const $ = (id) => document.getElementById(id);
let row = null;
let busy = 0;

function element(kind, text, name) {
  const made = document.createElement(kind);
  if (text !== undefined && text !== null) made.textContent = text;
  if (name) made.className = name;
  return made;
}

async function call(path, body) {
  const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    throw new Error("the review has ended in the terminal: what you said is kept, start it again to go on");
  }
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error);
  return told;
}

// One thing at a time. Keys pressed meanwhile are dropped: a second press must not judge a row that nobody saw yet.
async function work(step) {
  if (busy) return;
  busy = 1;
  try { await step(); $("trouble").hidden = true; } catch (error) { $("trouble").textContent = error.message; $("trouble").hidden = false; }
  busy = 0;
  document.body.dataset.settled = String(Number(document.body.dataset.settled || 0) + 1);
}

async function show(number) {
  row = await call(`row/${number}`);
  progress(row.state);
  $("stratum").textContent = row.stratum === "random" ? "random sample" : "lowest margin (in no estimate)";
  $("stratum").className = row.stratum;
  $("said").textContent = row.said ? row.said.replace("_", " ") + (row.said_answer ? `: ${row.said_answer}` : "") : "";
  $("said").className = row.said === "right" || row.said === "skip" ? "right" : "wrong";
  $("question").textContent = row.question;
  $("answer").replaceChildren(element("span", row.answer), element("small", [row.entity_type, ...row.aliases].join(" · ")));
  $("evidence").textContent = row.evidence || "(none)";
  origin();
  const seen = pictures();
  binding();
  gates();
  $("checks").replaceChildren(...row.checks.map((one) => element("li", `${one.passed ? "✓" : "✗"} ${one.name}${one.detail ? ": " + one.detail : ""}`, one.passed ? "" : "failed")));
  $("better").hidden = true;
  $("facts").scrollTop = $("pictures").scrollTop = 0;
  await seen; // no key counts before the pictures are there
  document.body.dataset.row = row.number;
}

function progress(state) {
  $("name").textContent = `${state.snapshot} ${state.revision}`;
  $("who").textContent = `reviewer ${state.reviewer} · row ${(row ? row.number : 0) + 1} of ${state.count}`;
  for (const [id, counts] of [["random", state.random], ["margin", state.lowest_margin]]) {
    $(id).textContent = `${counts[0]} of ${counts[1]}`;
    $(`${id}-bar`).max = counts[1] || 1;
    $(`${id}-bar`).value = counts[0];
  }
  $("wrong").textContent = `${state.wrong} wrong`;
  document.title = `${state.random[0] + state.lowest_margin[0]}/${state.count} Review`;
}

function origin() {
  const link = element("a", row.title || row.article_url);
  if (/^https?:/.test(row.article_url)) { link.href = row.article_url; link.rel = "noreferrer noopener"; link.target = "_blank"; }
  const facts = [
    ["from", row.evidence_in], ["article", link], ["publisher", `${row.publisher} · ${row.published_at}${row.date_certain ? "" : " (not certain)"}`],
    ["domain", row.domain], ["looked for", [row.phrase, row.position].filter(Boolean).join(", ")], ["writer", row.writer + (row.portable ? " · portable annotator" : "")], ["id", row.id],
  ];
  $("origin").replaceChildren(...facts.flatMap(([name, value]) => {
    const cell = element("dd");
    cell.append(value);
    return [element("dt", name), cell];
  }));
}

function pictures() {
  const space = "http://www.w3.org/2000/svg";
  $("pictures").replaceChildren(...row.images.map((image, place) => {
    const shot = element("div", null, "shot");
    if (row.pictures[place]) {
      const picture = element("img");
      picture.src = `picture/${row.number}/${place}`;
      picture.alt = image.caption;
      // the place is kept free, so that nothing jumps when the picture comes
      picture.width = image.width;
      picture.height = image.height;
      const mask = element("img", null, "mask");
      mask.src = `mask/${row.number}/${place}`;
      mask.alt = "mask";
      const boxes = document.createElementNS(space, "svg");
      boxes.setAttribute("viewBox", `0 0 ${image.width} ${image.height}`);
      boxes.setAttribute("preserveAspectRatio", "none");
      image.candidates.forEach((box, number) => {
        const drawn = document.createElementNS(space, "rect");
        for (const [name, value] of [["x", box.x1], ["y", box.y1], ["width", box.x2 - box.x1], ["height", box.y2 - box.y1]]) drawn.setAttribute(name, value);
        if (number === image.chosen) drawn.setAttribute("class", "chosen");
        boxes.append(drawn);
      });
      shot.append(picture, mask, boxes);
    } else {
      shot.append(element("div", "The picture is not here: this snapshot holds addresses only.", "gone"));
    }
    const figure = element("figure");
    const words = element("figcaption", image.caption || "(no caption)");
    words.append(element("div", `${image.credit ? "Credit: " + image.credit + " · " : ""}${image.width} x ${image.height} · ${image.candidates.length} candidate${image.candidates.length === 1 ? "" : "s"}`, "small"));
    figure.append(shot, words);
    return figure;
  }));
  return Promise.all([...$("pictures").querySelectorAll("img")].map((one) => one.decode().catch(() => {})));
}

function grid(head, lines) {
  const table = element("table");
  const top = element("tr");
  head.forEach((name) => top.append(element("th", name)));
  table.append(top, ...lines);
  return table;
}

const short = (value) => (typeof value === "number" ? String(Math.round(value * 1000) / 1000) : value === null ? "–" : value);

function binding() {
  $("binding").replaceChildren(...row.images.map((image) => {
    const lines = image.binding.map((one) => {
      const made = element("tr", null, one.candidate === image.chosen ? "chosen" : "");
      made.append(element("td", one.kind), element("td", one.candidate + 1), element("td", short(one.score), "num"), element("td", one.detail));
      return made;
    });
    const part = element("div");
    part.append(element("p", `candidate ${image.chosen + 1} of ${image.candidates.length} by ${image.rule}, margin ${short(image.margin)}`, "small"), grid(["evidence", "for", "score", ""], lines));
    return part;
  }));
}

function gates() {
  $("gates").replaceChildren(...row.images.map((image) => grid(["figure", "value", "threshold", ""], image.gates.map((gate) => {
    const made = element("tr", null, gate.passed ? "" : "failed");
    made.append(element("td", gate.name), element("td", short(gate.value), "num"), element("td", short(gate.threshold), "num"), element("td", gate.passed ? "passed" : "failed"));
    return made;
  }))));
}

async function say(verdict, answer) {
  const body = { sample_id: row.id, verdict };
  if (answer) body.answer = answer;
  await show((await call("verdict", body)).at);
}

function move(name) {
  if (name === "undo") work(async () => show((await call("undo", {})).at));
  else if (name === "next" || name === "back") work(async () => show(Math.max(0, Math.min(row.state.count - 1, row.number + (name === "next" ? 1 : -1)))));
  else if (name === "mask on/off") document.body.classList.toggle("bare");
  else if (name === "boxes on/off") document.body.classList.toggle("boxes");
  else if (name === "finish") work(async () => { await call("finish", {}); document.body.replaceChildren(element("p", "The review has ended; what you said is kept. This page can be closed.", "gone")); });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (!$("better") || !row || busy) return;
  if (!$("better").hidden) {
    if (event.key === "Escape") { $("better").hidden = true; $("better-answer").blur(); }
    else if (event.key === "Enter") {
      event.preventDefault();
      const answer = $("better-answer").value.trim();
      $("better-answer").blur();
      $("better").hidden = true;
      work(() => say("wrong_answer", answer));
    }
    return;
  }
  const key = { ArrowRight: "n", ArrowLeft: "b", Backspace: "u", " ": "o" }[event.key] || event.key.toLowerCase();
  const verdict = KEYS.find(([name]) => name === key);
  const other = MOVES.find(([name]) => name === key);
  if (!verdict && !other) return;
  event.preventDefault();
  if (other) return move(other[1]);
  if (verdict[1] === "wrong_answer") {
    if (busy) return;
    $("better-answer").value = "";
    $("better").hidden = false;
    $("better-answer").focus();
    return;
  }
  work(() => say(verdict[1]));
});
document.addEventListener("submit", (event) => event.preventDefault());

$("keys").replaceChildren(...[...KEYS, ...MOVES].map(([key, word]) => {
  const made = element("span");
  made.append(element("kbd", key), ` ${word.replace("_", " ")}`);
  return made;
}));
work(async () => show((await call("state")).at));
