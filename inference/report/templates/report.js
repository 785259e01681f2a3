"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const el = (tag, attrs = {}, ...kids) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(attrs)) node.setAttribute(key, value);
    node.append(...kids);
    return node;
  };

  if ($("quoted")) {
    const toggle = () => document.body.classList.toggle("measured", !$("quoted").checked);
    $("quoted").addEventListener("change", toggle);
    toggle();
  }

  if (!$("cards")) return;
  const cards = JSON.parse($("cards-data").textContent);
  const chunks = new Map();
  const picture = (card) => {
    if (!chunks.has(card.chunk)) chunks.set(card.chunk, JSON.parse($(`chunk-${card.chunk}`).textContent));
    return chunks.get(card.chunk)[card.at];
  };
  const state = { list: [], shown: 0, open: -1 };
  const PAGE = 48;
  const value = (id) => $(id).value;
  const overlay = () => document.querySelector("input[name=overlay]:checked").value;
  const iou = (card, name = value("f-segmenter")) => {
    const found = card.iou[value("f-truth")][name];
    return found === undefined ? null : found;
  };
  const spread = (card) => {
    const known = Object.values(card.iou[value("f-truth")]).filter((one) => one !== null);
    return known.length > 1 ? Math.max(...known) - Math.min(...known) : 0;
  };

  const parts = new Map();
  for (const card of cards) for (const [tag, part] of Object.entries(card.tags)) {
    if (!parts.has(tag)) parts.set(tag, new Set());
    parts.get(tag).add(part);
  }
  for (const [tag, values] of [...parts].sort()) {
    if (values.size > 20) continue;
    const group = el("optgroup", { label: tag });
    for (const part of [...values].sort()) group.append(el("option", { value: JSON.stringify([tag, part]) }, part));
    $("f-part").append(group);
  }

  // masks: run lengths row by row, background first, base 36
  const paint = (data, runs, bit) => {
    let at = 0, on = false;
    for (const text of runs ? runs.split(" ") : []) {
      const length = parseInt(text, 36);
      if (on) for (let i = at; i < at + length; i++) data[i] |= bit;
      at += length;
      on = !on;
    }
  };
  const COLOURS = [[0, 0, 0, 0], [30, 144, 255, 120], [255, 122, 0, 120], [47, 191, 79, 110]];
  const draw = (canvas, card, name) => {
    const shot = picture(card), mode = overlay();
    canvas.width = card.w; canvas.height = card.h;
    if (mode === "none") return;
    const bits = new Uint8Array(card.w * card.h);
    if (mode !== "pred") paint(bits, shot.truth[value("f-truth")], 1);
    if (mode !== "truth") paint(bits, shot.pred[name], 2);
    const context = canvas.getContext("2d"), image = context.createImageData(card.w, card.h);
    const line = Math.max(1, Math.round(card.w / 240));
    for (let i = 0; i < bits.length; i++) {
      const bit = bits[i];
      if (!bit) continue;
      const colour = COLOURS[bit], x = i % card.w;
      const edge = x < line || x >= card.w - line || bits[i - line] !== bit || bits[i + line] !== bit || bits[i - line * card.w] !== bit || bits[i + line * card.w] !== bit;
      image.data.set([colour[0], colour[1], colour[2], edge ? 255 : colour[3]], 4 * i);
    }
    context.putImageData(image, 0, 0);
  };
  const verdict = (card, name) => {
    const found = iou(card, name);
    if (found !== null) return el("span", { class: "iou" }, `IoU ${found.toFixed(3)}`);
    return el("span", { class: "lost" }, (card.status[name] || "missing").replaceAll("_", " "));
  };
  const shotOf = (card, name) => {
    const image = el("img", { alt: `image ${card.image + 1} of sample ${card.id}`, width: card.w, height: card.h });
    image.src = picture(card).src;
    const canvas = el("canvas", { "aria-hidden": "true" });
    draw(canvas, card, name);
    return [image, canvas];
  };

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const box = entry.target;
      if (entry.isIntersecting && !box.firstChild) box.append(...shotOf(state.list[box.dataset.place], value("f-segmenter")));
      else if (!entry.isIntersecting) box.replaceChildren();
    }
  }, { rootMargin: "600px" });
  const cardNode = (card, place) => {
    const name = value("f-segmenter");
    const shot = el("div", { class: "shot", "data-place": place });
    const open = el("button", { type: "button", "aria-label": `open sample ${card.id}: ${card.q}` }, shot);
    open.addEventListener("click", () => show(place));
    watcher.observe(shot);
    const given = card.answers[name];
    const text = el("div", { class: "text" }, el("p", {}, verdict(card, name), ` · ${card.id}`), el("p", {}, card.q),
      el("p", { class: "answer" }, `${card.a}${given ? ` · answered: ${given}` : ""}`));
    return el("article", { class: "card" }, open, text);
  };
  const more = () => {
    const end = Math.min(state.shown + PAGE, state.list.length);
    const nodes = [];
    for (let place = state.shown; place < end; place++) nodes.push(cardNode(state.list[place], place));
    $("cards").append(...nodes);
    state.shown = end;
    $("more").hidden = end >= state.list.length;
  };
  const refresh = () => {
    const status = value("f-status"), part = value("f-part") ? JSON.parse(value("f-part")) : null;
    const words = value("f-text").toLowerCase().trim();
    const keep = (card) => {
      const found = iou(card);
      if (status === "scored" && found === null) return false;
      if (status === "lost" && found !== null) return false;
      if (status === "low" && !(found !== null && found < 0.5)) return false;
      if (status === "high" && !(found !== null && found >= 0.5)) return false;
      if (part && card.tags[part[0]] !== part[1]) return false;
      return !words || `${card.id} ${card.q} ${card.a}`.toLowerCase().includes(words);
    };
    const lost = (card) => iou(card) ?? -1;
    const orders = {
      worst: (a, b) => lost(a) - lost(b), best: (a, b) => lost(b) - lost(a),
      disputed: (a, b) => spread(b) - spread(a), id: () => 0,
    };
    state.list = cards.filter(keep).sort(orders[value("f-order")]);
    state.shown = 0;
    watcher.disconnect();
    $("cards").replaceChildren();
    $("count").textContent = `${state.list.length} of ${cards.length} shown`;
    more();
  };
  const redraw = () => {
    for (const box of document.querySelectorAll("#cards .shot")) {
      if (box.firstChild) draw(box.querySelector("canvas"), state.list[box.dataset.place], value("f-segmenter"));
    }
    if ($("view").open) show(state.open);
  };

  const traceNode = (steps) => {
    const list = el("dl", { class: "trace" });
    for (const step of steps) {
      list.append(el("dt", {}, step.module));
      for (const key of ["input", "output"]) if (step[key]) list.append(el("dd", {}, `${key}: ${step[key]}`));
      for (const [name, text] of Object.entries(step.values)) list.append(el("dd", {}, `${name}: ${text}`));
    }
    return list;
  };
  const show = (place) => {
    const card = state.list[place];
    if (!card) return;
    state.open = place;
    $("view-title").textContent = `${card.q} — ${card.a}`;
    const grid = el("div", { class: "view-grid" });
    for (const name of Object.keys(card.status)) {
      const box = el("div", { class: "shot" }, ...shotOf(card, name));
      box.style.aspectRatio = `${card.w} / ${card.h}`;
      const column = el("div", {}, el("h3", {}, name), box, el("p", {}, verdict(card, name)));
      const given = card.answers[name];
      if (given) column.append(el("p", { class: "answer" }, `answered: ${given}`));
      const steps = picture(card).trace[name];
      if (steps) column.append(traceNode(steps));
      grid.append(column);
    }
    const tags = Object.entries(card.tags).map(([tag, part]) => `${tag}: ${part}`).join(" · ");
    $("view-body").replaceChildren(el("p", { class: "small" }, `${card.id}${tags ? " · " + tags : ""}`), grid);
    if (!$("view").open) $("view").showModal();
  };

  for (const id of ["f-segmenter", "f-truth", "f-order", "f-status", "f-part"]) $(id).addEventListener("change", refresh);
  $("f-text").addEventListener("input", refresh);
  $("f-overlay").addEventListener("change", redraw);
  $("more").addEventListener("click", more);
  new IntersectionObserver((entries) => { if (entries[0].isIntersecting && !$("more").hidden) more(); }, { rootMargin: "2500px" }).observe($("more"));
  $("view-close").addEventListener("click", () => $("view").close());
  $("view-prev").addEventListener("click", () => show(state.open - 1));
  $("view-next").addEventListener("click", () => show(state.open + 1));
  $("view").addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") show(state.open - 1);
    if (event.key === "ArrowRight") show(state.open + 1);
  });
  refresh();
})();
