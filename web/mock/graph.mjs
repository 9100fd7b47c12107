/** A layout as the real server gives: one column of boxes, groups around what is open. */

export function graphOf(scene, query) {
  const root = tree(scene.rows.slice(0, 2000));
  const open = query.has("open")
    ? new Set(query.get("open").split(",").filter(Boolean))
    : new Set(wayTo(root, Number(query.get("op"))));
  const boxes = [];
  const edges = [];
  const fault = scene.info.verdict.op;
  const place = (node, parent, y, depth) => {
    const width = 182;
    const x = 120;
    if (node.row) {
      boxes.push({
        key: `op:${node.row.id}`,
        kind: "op",
        id: node.row.id,
        label: node.label,
        op_type: node.row.op_type,
        path: node.path,
        parent,
        is_open: false,
        x,
        y,
        width,
        height: 22,
        status: node.row.status,
        at_fault: node.row.at_fault,
        n: 1,
        n_fail: node.row.status === "fail" ? 1 : 0,
        entry: node.row.entry,
        on_way: fault !== null && node.row.id >= fault,
      });
      return y + 22;
    }
    const is_open = open.has(node.path);
    const all = leaves(node);
    const box = {
      key: `group:${node.path}`,
      kind: "group",
      id: null,
      label: node.label,
      op_type: "",
      path: node.path,
      parent,
      is_open,
      x: is_open ? 30 + depth * 12 : x,
      y,
      width: is_open ? 330 - depth * 24 : width,
      height: 22,
      status: worst(all),
      at_fault: all.some((r) => r.at_fault),
      n: all.length,
      n_fail: all.filter((r) => r.status === "fail").length,
      entry: null,
      on_way: fault !== null && all.some((r) => r.id >= fault),
    };
    boxes.push(box);
    if (!is_open) return y + 22;
    let bottom = y + 30;
    let previous = null;
    for (const child of node.children.values()) {
      const key = child.row ? `op:${child.row.id}` : `group:${child.path}`;
      if (previous) connect(previous, key);
      bottom = place(child, box.key, bottom, depth + 1) + 16;
      previous = key;
    }
    box.height = bottom - y - 4;
    return bottom - 4;
  };
  const wanted = [];
  const connect = (from, to) => wanted.push([from, to]);
  let y = 12;
  let previous = null;
  for (const child of root.children.values()) {
    const key = child.row ? `op:${child.row.id}` : `group:${child.path}`;
    if (previous) connect(previous, key);
    y = place(child, null, y, 0) + 18;
    previous = key;
  }
  const known = new Map(boxes.map((box) => [box.key, box]));
  for (const [from, to] of wanted) {
    const [a, b] = [known.get(from), known.get(to)];
    edges.push({
      from,
      to,
      on_way: a.on_way && b.on_way,
      points: [
        [211, a.y + a.height],
        [211, b.y],
      ],
    });
  }
  return { width: 420, height: y, boxes, edges };
}

function tree(rows) {
  const root = { path: "", children: new Map() };
  for (const row of rows) {
    const parts = row.op_name.split(row.op_name.includes("/") ? "/" : ".").filter(Boolean);
    if (parts.length > 1 && parts[parts.length - 1] === row.op_type) parts.pop();
    let node = root;
    parts.slice(0, -1).forEach((part) => {
      const path = node.path ? `${node.path}/${part}` : part;
      if (!node.children.has(part))
        node.children.set(part, { path, label: part, children: new Map() });
      node = node.children.get(part);
    });
    const label = parts[parts.length - 1] ?? row.op_name;
    node.children.set(`${label}#${row.id}`, { row, label, path: node.path });
  }
  return root;
}

/** The groups around an operator. */
function wayTo(node, id) {
  for (const child of node.children.values()) {
    if (child.row?.id === id) return node.path ? [node.path] : [];
    if (child.row || !leaves(child).some((row) => row.id === id)) continue;
    return [...(node.path ? [node.path] : []), ...wayTo(child, id)];
  }
  return [];
}

function leaves(node) {
  return [...node.children.values()].flatMap((child) => (child.row ? [child.row] : leaves(child)));
}

function worst(rows) {
  return ["fail", "warn", "pass", "skip"].find((s) => rows.some((r) => r.status === s)) ?? "pass";
}
