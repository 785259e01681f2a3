"use strict";
(() => {
  // tables: click or Enter on a heading sorts; cells without a value stay last
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, column) => head.querySelector(".sort").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numeric = head.classList.contains("num");
      const key = (row) => row.cells[column].dataset.value;
      const body = table.tBodies[0];
      [...body.rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
        const order = numeric ? Number(x) - Number(y) : x.localeCompare(y);
        return down ? -order : order;
      }).forEach((row) => body.append(row));
    }));
  }
})();
