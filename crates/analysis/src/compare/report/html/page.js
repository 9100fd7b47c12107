"use strict";
(() => {
  // Texts of dumps are shown with `textContent` only: whatever a name holds, it is no markup.
  const data = JSON.parse(document.getElementById("data").textContent);
  const { operators, slots, texts, details, skips } = data;
  const numbers = Object.fromEntries(slots.numbers);
  const LEVELS = ["fail", "warn", "pass", "skip"];
  const ROW = 24;
  // Browsers cannot lay out elements of any height.
  const HEIGHT_MAX = 8e6;
  const $ = (id) => document.getElementById(id);

  // What nobody would see, or what turns the order of other characters, is shown as its number.
  const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0\ufe00-\ufe0f]/gu;
  const visible = (text) => String(text).replace(HIDDEN, (c) => "\\u{" + c.codePointAt(0).toString(16) + "}");
  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined && text !== null) made.textContent = visible(text);
    if (className) made.className = className;
    return made;
  };
  const value = (x) => (x === "inf" ? Infinity : x === "-inf" ? -Infinity : x === "nan" || x === null || x === undefined ? NaN : x);
  const digits = (x) => {
    if (x === null || x === undefined) return "";
    if (typeof x !== "number" || Number.isInteger(x)) return String(x);
    const size = Math.abs(x);
    return size >= 1e-3 && size < 1e7 ? String(Number(x.toPrecision(5))) : x.toExponential(3);
  };
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const operatorName = (i) => (texts[operators.type_text[i]] + " " + operators.name[i]).trim();
  const number = (name) => {
    const column = numbers[name] || [];
    return { title: name, width: 90, isNumber: true, of: (i) => column[i] };
  };

  const tables = {
    operators: {
      n: operators.level.length,
      level: (i) => operators.level[i],
      columns: [
        { title: "#", width: 70, isNumber: true, of: (i) => i },
        { title: "level", width: 60, of: (i) => operators.level[i] },
        { title: "type", width: 130, of: (i) => texts[operators.type_text[i]] },
        { title: "name", width: 320, of: (i) => operators.name[i] },
        { title: "golden name", width: 160, of: (i) => operators.golden[i] },
        { title: "place", width: 130, of: (i) => texts[operators.place_text[i]] },
        { title: "matched by", width: 90, of: (i) => texts[operators.how_text[i]] },
        { title: "inputs", width: 90, isNumber: true, of: (i) => operators.inputs[i] },
        { title: "outputs", width: 90, isNumber: true, of: (i) => operators.outputs[i] },
        { title: "added", width: 90, isNumber: true, of: (i) => operators.added[i] },
        { title: "cause", width: 80, of: (i) => operators.cause[i] },
        { title: "NaN, Inf", width: 90, of: (i) => operators.role[i] || "" },
      ],
      operator: (i) => i,
      choose: (i) => showOperator(i),
    },
    slots: {
      n: slots.level.length,
      level: (i) => slots.level[i],
      columns: [
        { title: "#", width: 70, isNumber: true, of: (i) => slots.operator[i] },
        { title: "level", width: 60, of: (i) => slots.level[i] },
        { title: "type", width: 120, of: (i) => texts[operators.type_text[slots.operator[i]]] },
        { title: "name", width: 260, of: (i) => operators.name[slots.operator[i]] },
        { title: "place", width: 120, of: (i) => texts[operators.place_text[slots.operator[i]]] },
        { title: "slot", width: 80, of: (i) => texts[slots.slot_text[i]] },
        { title: "evidence", width: 75, of: (i) => texts[slots.evidence_text[i]] },
        { title: "dtype", width: 100, of: (i) => texts[slots.dtype_text[i]] },
        { title: "shape", width: 120, of: (i) => texts[slots.shape_text[i]] },
        ...["cosine", "rel_l2", "max_abs", "max_rel", "max_ulp", "snr_db", "share_1_1000"].map(number),
        ...["n", "n_nan_mismatches", "n_inf_mismatches", "target_min", "target_max", "golden_min", "golden_max"].map(number),
      ],
      operator: (i) => slots.operator[i],
      choose: (i) => showOperator(slots.operator[i], i),
    },
    skipped: {
      n: skips.length,
      level: () => "skip",
      columns: [
        { title: "side", width: 70, of: (i) => skips[i].side },
        { title: "reason", width: 110, of: (i) => skips[i].reason },
        { title: "type", width: 120, of: (i) => skips[i].op_type },
        { title: "name", width: 260, of: (i) => skips[i].name },
        { title: "place", width: 120, of: (i) => skips[i].place },
        { title: "slot", width: 80, of: (i) => skips[i].slot },
        { title: "allowed", width: 70, of: (i) => (skips[i].is_allowed ? "yes" : "no") },
        { title: "message", width: 420, of: (i) => skips[i].message },
        { title: "file", width: 420, of: (i) => skips[i].path },
      ],
      operator: () => -1,
      choose: (i) => showSkip(i),
    },
  };

  // Whether a row is about the operator that the verdict names.
  const isFault = (table, i) => data.first !== null && table.operator(i) === data.first[0];

  // What is shown of which table: rows in order, after filter and sorting.
  const state = { tab: "operators", order: [], sort: null, isDown: false, chosen: -1, levels: new Set(LEVELS), search: "" };

  function arrange() {
    const table = tables[state.tab];
    const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
    const searched = table.columns.filter((column) => !column.isNumber);
    const order = [];
    for (let i = 0; i < table.n; i++) {
      if (!state.levels.has(table.level(i))) continue;
      if (words.length > 0) {
        const text = searched.map((column) => column.of(i)).join("\n").toLowerCase();
        if (!words.every((word) => text.includes(word))) continue;
      }
      order.push(i);
    }
    const column = table.columns[state.sort];
    if (!column) {
      // The sort keeps the order of what is equal, so all others stay in the order of execution.
      order.sort((a, b) => isFault(table, b) - isFault(table, a));
    } else {
      const sign = state.isDown ? -1 : 1;
      // What has no number comes last, whichever way.
      const byNumber = (a, b) => {
        const [x, y] = [value(column.of(a)), value(column.of(b))];
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b;
        return (x === y ? 0 : x < y ? -sign : sign) || a - b;
      };
      const byLevel = (a, b) => sign * (LEVELS.indexOf(column.of(b)) - LEVELS.indexOf(column.of(a))) || a - b;
      const byText = (a, b) => {
        const [x, y] = [column.of(a), column.of(b)];
        return (x === y ? 0 : x < y ? -sign : sign) || a - b;
      };
      order.sort(column.isNumber ? byNumber : column.title === "level" ? byLevel : byText);
    }
    state.order = order;
    $("count").textContent = order.length + " of " + table.n;
    const height = Math.min(order.length * ROW, HEIGHT_MAX);
    $("body").style.height = height + "px";
    $("body").style.width = table.columns.reduce((sum, column) => sum + column.width, 0) + "px";
    showHead();
    showRows();
  }

  function showHead() {
    const cells = tables[state.tab].columns.map((column, i) => {
      const arrow = state.sort === i ? (state.isDown ? " ▼" : " ▲") : "";
      const cell = element("span", column.title + arrow, column.isNumber ? "number" : "");
      cell.style.width = column.width + "px";
      cell.title = column.title;
      cell.onclick = () => {
        const isSame = state.sort === i;
        // Numbers are most interesting from the top; the third click gives the order of execution back.
        const startsDown = Boolean(column.isNumber) || column.title === "level";
        if (!isSame) [state.sort, state.isDown] = [i, startsDown];
        else if (state.isDown === startsDown) state.isDown = !startsDown;
        else state.sort = null;
        arrange();
      };
      return cell;
    });
    $("head").replaceChildren(...cells);
  }

  /// The first row in sight. Where there are more rows than the height allows, scrolling passes over some.
  function firstRow() {
    const n = state.order.length;
    const inSight = Math.ceil($("table").clientHeight / ROW);
    const height = n * ROW;
    if (height <= HEIGHT_MAX) return Math.floor($("table").scrollTop / ROW);
    const share = $("table").scrollTop / Math.max(1, HEIGHT_MAX + ROW - $("table").clientHeight);
    return Math.round(Math.min(1, share) * Math.max(0, n - inSight + 1));
  }

  function showRows() {
    const table = tables[state.tab];
    const n = state.order.length;
    const isWhole = n * ROW <= HEIGHT_MAX;
    const first = Math.max(0, Math.min(firstRow(), n - 1));
    const last = Math.min(n, first + Math.ceil($("table").clientHeight / ROW) + 2);
    const rows = [];
    for (let at = first; at < last; at++) {
      const i = state.order[at];
      const row = element("div", null, "row" + (i === state.chosen ? " chosen" : "") + (isFault(table, i) ? " fault" : ""));
      for (const column of table.columns) {
        const content = column.of(i);
        const text = column.isNumber ? digits(content) : content;
        const isLevel = column.title === "level";
        const cell = element("span", text, column.isNumber ? "number" : isLevel ? content : "");
        cell.style.width = column.width + "px";
        if (!column.isNumber) cell.title = visible(text);
        row.append(cell);
      }
      row.onclick = () => choose(i);
      rows.push(row);
    }
    $("rows").style.top = (isWhole ? first * ROW : $("table").scrollTop) + "px";
    $("rows").replaceChildren(...rows);
  }

  function choose(i) {
    state.chosen = i;
    tables[state.tab].choose(i);
    showRows();
  }

  function open(tab, chosen) {
    [state.tab, state.sort, state.chosen] = [tab, null, chosen];
    for (const button of $("tabs").children) button.setAttribute("aria-selected", String(button.value === tab));
    arrange();
    reveal(chosen);
  }

  function reveal(chosen) {
    let at = state.order.indexOf(chosen);
    if (at < 0 && chosen >= 0) {
      // The filter hides what was asked for.
      state.search = $("search").value = "";
      for (const box of $("levels").querySelectorAll("input")) box.checked = true;
      state.levels = new Set(LEVELS);
      arrange();
      at = state.order.indexOf(chosen);
    }
    const n = state.order.length;
    const inSight = $("table").clientHeight / ROW;
    const row = Math.max(0, at - inSight / 2);
    const isWhole = n * ROW <= HEIGHT_MAX;
    $("table").scrollTop = isWhole ? row * ROW : (row / Math.max(1, n - inSight)) * (HEIGHT_MAX - $("table").clientHeight);
    showRows();
  }

  function rowsOf(pairs) {
    const table = element("table");
    for (const [title, content] of pairs) {
      if (content === "" || content === null || content === undefined) continue;
      const row = element("tr");
      row.append(element("td", title), element("td", content));
      table.append(row);
    }
    return table;
  }

  function slotsOf(i) {
    const end = i + 1 < operators.slot.length ? operators.slot[i + 1] : slots.level.length;
    return Array.from({ length: end - operators.slot[i] }, (_, k) => operators.slot[i] + k);
  }

  function showOperator(i, slot) {
    const all = slotsOf(i);
    const worst = (a, b) => (LEVELS.indexOf(slots.level[b]) < LEVELS.indexOf(slots.level[a]) ? b : a);
    const shown = slot === undefined ? all.slice().reverse().reduce(worst, all[all.length - 1]) : slot;
    const title = element("h3", operatorName(i));
    const list = element("div");
    list.id = "slots";
    for (const k of all) {
      const button = element("button", texts[slots.slot_text[k]], slots.level[k]);
      button.type = "button";
      button.setAttribute("aria-selected", String(k === shown));
      button.onclick = () => showOperator(i, k);
      list.append(button);
    }
    const from = operators.from[i];
    const facts = rowsOf([
      ["level", operators.level[i]],
      ["golden name", operators.golden[i]],
      ["place", texts[operators.place_text[i]]],
      ["matched by", texts[operators.how_text[i]] + (operators.likeness[i] === null ? "" : " " + digits(operators.likeness[i]))],
      ["error of inputs", digits(operators.inputs[i])],
      ["error of outputs", digits(operators.outputs[i])],
      ["added", digits(operators.added[i])],
      ["cause", operators.cause[i]],
      ["suspects", (operators.suspects[i] || []).join("; ")],
      ["NaN, Inf", operators.role[i] && operators.role[i] + (from === null ? "" : ", from " + operatorName(from))],
    ]);
    $("detail").replaceChildren(title, facts, list);
    $("detail").hidden = false;
    if (shown !== undefined) showSlot(shown);
  }

  function showSlot(k) {
    const detail = details[k] || {};
    const main = slots.numbers.map(([name, column]) => [name, column[k]]);
    const more = (detail.more || []).map((x, i) => [data.more_metrics[i], x]);
    const parts = [
      rowsOf([
        ["slot", texts[slots.slot_text[k]] + (slots.golden_text[k] ? " / " + texts[slots.golden_text[k]] : "")],
        ["dtype", texts[slots.dtype_text[k]]],
        ["shape", texts[slots.shape_text[k]]],
        ["evidence", texts[slots.evidence_text[k]]],
        ["why", (detail.rules || []).join("; ")],
        ["largest difference, target / golden", detail.worst],
        ["elements that differ", (detail.differing || []).join("; ")],
        ["files", (detail.files || []).join("\n")],
      ]),
    ];
    if (detail.histogram) parts.push(element("h2", "elements by relative difference"), histogram(detail.histogram));
    parts.push(rowsOf(main.concat(more).map(([name, x]) => [name, digits(x)])));
    if (detail.yardstick) {
      parts.push(element("h2", "reference against golden"), rowsOf(detail.yardstick.map(([name, x]) => [name, digits(x)])));
    }
    $("detail").append(...parts);
    const drawn = $("detail").querySelector("canvas");
    if (drawn) drawHistogram(drawn, detail.histogram);
  }

  function histogram(bins) {
    const canvas = element("canvas");
    canvas.title = bins.map((n, i) => binName(i, bins.length) + ": " + n).join("\n");
    return canvas;
  }

  /// Bins: below 1e-12, one for each power of ten, and what is 1e3 or more.
  function binName(i, n) {
    if (i === 0) return "< 1e-12";
    if (i === n - 1) return "≥ 1e" + (n - 14);
    return "1e" + (i - 13) + " to 1e" + (i - 12);
  }

  function prepared(canvas) {
    const scale = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth || 600, canvas.clientHeight || 56];
    canvas.width = width * scale;
    canvas.height = height * scale;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    return { context, width, height };
  }

  function drawHistogram(canvas, bins) {
    const { context, width, height } = prepared(canvas);
    const top = Math.log10(1 + Math.max(...bins));
    const step = width / bins.length;
    context.font = "10px system-ui, sans-serif";
    bins.forEach((n, i) => {
      const bar = top > 0 ? (Math.log10(1 + n) / top) * (height - 34) : 0;
      context.fillStyle = colour("fail");
      context.globalAlpha = 0.35 + (0.65 * i) / bins.length;
      context.fillRect(i * step + 1, height - 18 - bar, step - 2, bar);
      context.globalAlpha = 1;
      context.fillStyle = colour("faint");
      if (i % 3 === 1) context.fillText("1e" + (i - 13), i * step, height - 5);
    });
    context.fillText("logarithmic, largest " + Math.max(...bins), 2, 10);
  }

  function showSkip(i) {
    const skip = skips[i];
    const rows = Object.entries(skip).map(([name, content]) => [name, String(content)]);
    $("detail").replaceChildren(element("h3", "not compared"), rowsOf(rows));
    $("detail").hidden = false;
  }

  /// The strip: above the outputs' errors by magnitude, below the levels. Where operators are more than pixels, each
  /// pixel shows the worst of its operators.
  function drawStrip() {
    const { context, width, height } = prepared($("strip"));
    const n = operators.level.length;
    context.clearRect(0, 0, width, height);
    const columns = Math.min(n, Math.floor(width));
    const colours = Object.fromEntries(LEVELS.map((level) => [level, colour(level)]));
    const strip = height - 12;
    for (let c = 0; c < columns; c++) {
      const [from, to] = [Math.floor((c * n) / columns), Math.floor(((c + 1) * n) / columns)];
      let level = "skip";
      let size = -1;
      for (let i = from; i < to; i++) {
        const own = operators.level[i];
        if (own !== "skip" && (level === "skip" || LEVELS.indexOf(own) < LEVELS.indexOf(level))) level = own;
        const error = value(operators.outputs[i]);
        if (!Number.isNaN(error)) size = Math.max(size, error === Infinity ? 1 : error <= 0 ? 0 : (Math.log10(error) + 8) / 9);
      }
      const [left, right] = [(c * width) / columns, ((c + 1) * width) / columns];
      const bar = Math.max(0, Math.min(1, size)) * strip;
      context.fillStyle = colours[level];
      context.globalAlpha = 0.75;
      context.fillRect(left, strip - bar, Math.max(1, right - left), bar);
      context.globalAlpha = 1;
      context.fillRect(left, strip + 2, Math.max(1, right - left), 10);
    }
  }

  function operatorAt(event) {
    const box = $("strip").getBoundingClientRect();
    const n = operators.level.length;
    return Math.max(0, Math.min(n - 1, Math.floor(((event.clientX - box.left) / box.width) * n)));
  }

  function showTop() {
    $("verdict").textContent = visible(data.verdict);
    $("verdict").className = data.level;
    document.title = "opscope compare: " + data.level;
    for (const [title, content] of data.facts) {
      $("facts").querySelector("dl").append(element("dt", title), element("dd", content));
    }
    const jump = (i, label) => {
      const button = element("button", label || "#" + i + " " + operatorName(i));
      button.type = "button";
      button.onclick = () => { open("operators", i); choose(i); };
      return button;
    };
    if (data.first) {
      $("first").hidden = false;
      $("first").append(jump(data.first[0], "show where they part"));
      const worst = data.ranking.slice(0, 5);
      if (worst.length > 0) $("first").append(element("span", " added most: "));
      for (const i of worst) $("first").append(jump(i), " ");
    }
    if (data.chain.length > 0) {
      $("chain").hidden = false;
      for (const i of data.chain) {
        const item = element("li");
        item.append(jump(i));
        $("chain").querySelector("ol").append(item);
      }
    }
  }

  function start() {
    showTop();
    for (const tab of Object.keys(tables)) {
      const button = element("button", tab + " (" + tables[tab].n + ")");
      button.type = "button";
      button.value = tab;
      button.setAttribute("role", "tab");
      button.onclick = () => open(tab, -1);
      $("tabs").append(button, " ");
    }
    for (const level of LEVELS) {
      const label = element("label");
      const box = element("input");
      box.type = "checkbox";
      box.checked = true;
      box.onchange = () => {
        if (box.checked) state.levels.add(level); else state.levels.delete(level);
        arrange();
      };
      label.append(box, element("span", " " + level, level));
      $("levels").append(label);
    }
    let waiting = 0;
    $("search").oninput = () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { state.search = $("search").value; $("table").scrollTop = 0; arrange(); }, 120);
    };
    let isAsked = false;
    $("table").onscroll = () => {
      if (isAsked) return;
      isAsked = true;
      requestAnimationFrame(() => { isAsked = false; showRows(); });
    };
    $("table").onkeydown = (event) => {
      const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
      if (step === 0 || state.order.length === 0) return;
      event.preventDefault();
      const at = Math.max(0, Math.min(state.order.length - 1, state.order.indexOf(state.chosen) + step));
      choose(state.order[at]);
      const [top, sight] = [at * ROW, $("table").clientHeight - 2 * ROW];
      if (top < $("table").scrollTop) $("table").scrollTop = top;
      if (top > $("table").scrollTop + sight) $("table").scrollTop = top - sight;
    };
    $("strip").onclick = (event) => {
      if (operators.level.length === 0) return;
      const i = operatorAt(event);
      open("operators", i);
      choose(i);
    };
    $("strip").onmousemove = (event) => {
      if (operators.level.length === 0) return;
      const i = operatorAt(event);
      const error = operators.outputs[i] === null ? "" : ", error " + digits(operators.outputs[i]);
      $("legend").textContent = "#" + i + " " + visible(operatorName(i)) + ": " + operators.level[i] + error;
    };
    $("theme").onclick = () => {
      const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
      const now = document.documentElement.dataset.theme || (isDark ? "dark" : "light");
      document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
      drawStrip();
      const drawn = $("detail").querySelector("canvas");
      if (drawn && state.chosen >= 0) choose(state.chosen);
    };
    window.onresize = () => { drawStrip(); showRows(); };
    $("legend").textContent = "height: error of the outputs from 1e-8 to 10, by magnitude; below: the level";
    drawStrip();
    open("operators", -1);
  }

  start();
})();
