/** Draws boxes and edges of a graph. */

import type { Graph, GraphBox, GraphEdge, Status } from "../api";
import { font, textWidth } from "../canvas";
import type { Colours } from "../colours";
import { dropPrefix, visible } from "../names";
import { t } from "../texts";
import type { Camera } from "./camera";
import { partnersOf } from "./open";
import { drawSpine } from "./spine";

export const BOXES_MAX = 5000;
const NO_TYPES_BELOW = 0.5;
const NO_TEXT_BELOW = 0.25;
const HEAD_HEIGHT = 24;
const TWO_LINES_FROM = 36;

interface Look {
  fill: string;
  outline: string;
  text: string;
  type: string;
  is_dashed: boolean;
}

export interface Selection {
  op: number | null;
  /** The chosen box, if the operator has several or is unmatched. */
  key: string | null;
}

/** Other marks: boxes paired by hand, and those being paired. */
export interface HandMarks {
  paired: ReadonlySet<string>;
  chosen: ReadonlySet<string>;
}

export const NO_MARKS: HandMarks = { paired: new Set(), chosen: new Set() };

export function boxOf(graph: Graph, selection: Selection): GraphBox | null {
  return (
    graph.boxes.find((b) => b.key === selection.key) ??
    graph.boxes.find((b) => selection.op !== null && b.id === selection.op) ??
    null
  );
}

export function drawGraph(
  context: CanvasRenderingContext2D,
  width: number,
  height: number,
  colours: Colours,
  graph: Graph,
  camera: Camera,
  selection: Selection,
  marks: HandMarks = NO_MARKS,
): void {
  const seen = {
    left: camera.x,
    top: camera.y,
    right: camera.x + width / camera.scale,
    bottom: camera.y + height / camera.scale,
  };
  context.save();
  context.scale(camera.scale, camera.scale);
  context.translate(-camera.x, -camera.y);
  const shown = graph.boxes
    .filter(
      (box) =>
        box.x < seen.right &&
        box.x + box.width > seen.left - 80 &&
        box.y < seen.bottom &&
        box.y + box.height > seen.top,
    )
    .slice(0, BOXES_MAX);
  // Golden is the reference: only when alone does it show the verdicts of its matches.
  const is_plain = (box: GraphBox) => graph.step !== null && box.side === "golden";
  const depths = depthsOf(graph);
  for (const box of shown) {
    if (box.is_open) {
      drawOpenGroup(context, colours, box, depths.get(box.key) ?? 0, camera.scale, is_plain(box));
    }
  }
  for (const is_way of [false, true]) {
    for (const edge of graph.edges) {
      if (edge.on_way === is_way && crosses(edge, seen)) drawEdge(context, colours, edge);
    }
  }
  for (const box of shown) {
    if (!box.is_open) drawBox(context, colours, box, camera.scale, is_plain(box));
  }
  if (camera.scale >= NO_TEXT_BELOW) drawSpine(context, colours, graph, seen);
  const selected = boxOf(graph, selection);
  if (selected) drawSelection(context, colours, selected);
  const partners = partnersOf(graph, selected);
  if (partners.length > 0) drawRing(context, colours, partners);
  for (const box of shown) {
    if (marks.chosen.has(box.key)) drawRing(context, colours, [box]);
    if (!box.is_open && (box.by_hand || marks.paired.has(box.key))) drawDot(context, colours, box);
  }
  context.restore();
}

const depth_cache = new WeakMap<Graph, Map<string, number>>();

export function depthsOf(graph: Graph): Map<string, number> {
  let depths = depth_cache.get(graph);
  if (depths) return depths;
  depths = new Map();
  const boxes = new Map(graph.boxes.map((box) => [box.key, box]));
  for (const box of graph.boxes) {
    let depth = 0;
    let parent = box.parent;
    // A parent cycle would never end.
    while (parent !== null && depth < 64) {
      depth += 1;
      parent = boxes.get(parent)?.parent ?? null;
    }
    depths.set(box.key, depth);
  }
  depth_cache.set(graph, depths);
  return depths;
}

function crosses(
  edge: GraphEdge,
  seen: { left: number; top: number; right: number; bottom: number },
): boolean {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const [x, y] of edge.points) {
    left = Math.min(left, x);
    right = Math.max(right, x);
    top = Math.min(top, y);
    bottom = Math.max(bottom, y);
  }
  return left < seen.right && right > seen.left && top < seen.bottom && bottom > seen.top;
}

function lookOf(colours: Colours, box: GraphBox, is_plain: boolean): Look {
  const of = colours.of;
  if (box.only || box.reason) {
    return {
      fill: of("surface"),
      outline: of("skip"),
      text: of("text2"),
      type: of("text3"),
      is_dashed: true,
    };
  }
  // A closed group that contains the culprit has a full-colour outline; only the culprit is solid.
  if (box.at_fault && box.kind === "op" && box.side === "target") {
    return {
      fill: of("fail"),
      outline: of("fail"),
      text: of("onfail"),
      type: of("onfail"),
      is_dashed: false,
    };
  }
  const plain = { text: of("text"), type: of("text3"), is_dashed: false };
  const looks: Record<Status, Look> = {
    fail: { ...plain, fill: of("failbg"), outline: box.at_fault ? of("fail") : of("failpale") },
    warn: { ...plain, fill: of("warnbg"), outline: of("warnpale") },
    pass: { ...plain, fill: of("surface"), outline: of("line2") },
    skip: { ...plain, fill: of("surface"), outline: of("skip"), is_dashed: true },
  };
  return is_plain && box.status !== "skip" ? looks.pass : looks[box.status];
}

function drawBox(
  context: CanvasRenderingContext2D,
  colours: Colours,
  box: GraphBox,
  scale: number,
  is_plain: boolean,
): void {
  const look = lookOf(colours, box, is_plain);
  context.lineWidth = 1.25;
  if (box.kind === "group" && scale >= NO_TEXT_BELOW) {
    roundBox(context, box.x + 3, box.y + 3, box.width, box.height, 5);
    context.fillStyle = look.fill;
    context.fill();
    context.strokeStyle = look.outline;
    context.stroke();
  }
  roundBox(context, box.x, box.y, box.width, box.height, 5);
  context.fillStyle = look.fill;
  context.fill();
  context.strokeStyle = look.outline;
  if (look.is_dashed) context.setLineDash([4, 3]);
  context.stroke();
  context.setLineDash([]);
  if (box.entry !== null) drawEntry(context, colours, box);
  if (scale < NO_TEXT_BELOW) return;
  const y = box.y + box.height / 2 + 0.5;
  const right = scale < NO_TYPES_BELOW ? "" : box.kind === "group" ? t.n_ops(box.n) : box.op_type;
  if (box.height >= TWO_LINES_FROM && right !== "") {
    drawTwoLines(context, box, visible(right), look);
    return;
  }
  drawWords(context, box.x + 10, y, box.width - 20, labelOf(box), visible(right), look);
}

/** For a box as tall as those it replaces: the name above the type. */
function drawTwoLines(
  context: CanvasRenderingContext2D,
  box: GraphBox,
  note: string,
  look: { text: string; type: string },
): void {
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const [text, css_font, colour, line] of [
    [labelOf(box), font(12, 500), look.text, -8],
    [note, font(11, 400), look.type, 9],
  ] as const) {
    const width = box.width - 16;
    const shown = textWidth(text, css_font) <= width ? text : cutMiddle(text, width, css_font);
    context.font = css_font;
    context.fillStyle = colour;
    context.fillText(shown, x, y + line);
  }
}

function labelOf(box: GraphBox): string {
  const label = visible(box.kind === "op" ? dropPrefix(box.label) : box.label);
  return box.kind === "group" ? `${box.is_open ? "▾" : "▸"} ${label}` : label;
}

/** A label at the left and a note at the right; the note shrinks first, then the label. */
function drawWords(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  label: string,
  note: string,
  look: { text: string; type: string },
): void {
  const strong = font(12, 500);
  const plain = font(11, 400);
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.font = strong;
  context.fillStyle = look.text;
  const label_width = textWidth(label, strong);
  const shown = label_width <= width ? label : cutMiddle(label, width, strong);
  context.fillText(shown, x, y);
  const left = width - Math.min(label_width, width) - 8;
  if (note === "" || left < 24) return;
  const short = textWidth(note, plain) <= left ? note : cutEnd(note, left, plain);
  if (short === "") return;
  context.font = plain;
  context.fillStyle = look.type;
  context.textAlign = "right";
  context.fillText(short, x + width, y);
}

function cutMiddle(text: string, width: number, css_font: string): string {
  for (let n = Math.floor((text.length - 1) / 2); n > 2; n -= 1) {
    const cut = `${text.slice(0, n)}…${text.slice(-n)}`;
    if (textWidth(cut, css_font) <= width) return cut;
  }
  return text.slice(0, 3);
}

function cutEnd(text: string, width: number, css_font: string): string {
  for (let n = text.length - 1; n > 2; n -= 1) {
    const cut = `${text.slice(0, n)}…`;
    if (textWidth(cut, css_font) <= width) return cut;
  }
  return "";
}

function drawOpenGroup(
  context: CanvasRenderingContext2D,
  colours: Colours,
  box: GraphBox,
  depth: number,
  scale: number,
  is_plain: boolean,
): void {
  roundBox(context, box.x, box.y, box.width, box.height, 8);
  context.fillStyle = depth % 2 === 0 ? colours.of("bg") : colours.of("surface");
  context.fill();
  context.lineWidth = 1;
  context.strokeStyle = colours.of("line2");
  context.stroke();
  if (scale < NO_TEXT_BELOW) return;
  const fails = box.n_fail > 0 && !is_plain;
  const note = fails ? t.n_of_fail(box.n_fail, box.n) : t.n_ops(box.n);
  const look = { text: colours.of("text"), type: fails ? colours.of("fail") : colours.of("text3") };
  drawWords(
    context,
    box.x + 10,
    box.y + HEAD_HEIGHT / 2 + 1,
    box.width - 20,
    labelOf(box),
    note,
    look,
  );
}

/** A differing weight enters as a pill from the left, near enough to be in view when the graph's width fits. */
function drawEntry(context: CanvasRenderingContext2D, colours: Colours, box: GraphBox): void {
  const letter = { weight: "W", bias: "B", input: "X" }[box.entry!];
  const width = 20;
  const x = box.x - width - 10;
  const y = box.y + box.height / 2 - 8;
  context.strokeStyle = colours.of("fail");
  context.lineWidth = 1.5;
  roundBox(context, x, y, width, 16, 8);
  context.fillStyle = colours.of("surface");
  context.fill();
  context.stroke();
  context.fillStyle = colours.of("fail");
  context.font = font(11, 600);
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(letter, x + width / 2, y + 8.5);
  context.beginPath();
  context.moveTo(x + width, y + 8);
  context.lineTo(box.x - 6, y + 8);
  context.stroke();
  arrowHead(context, box.x - 1, y + 8, 0);
}

function drawEdge(context: CanvasRenderingContext2D, colours: Colours, edge: GraphEdge): void {
  const { points } = edge;
  if (points.length < 2) return;
  const colour = edge.on_way ? colours.of("fail") : colours.of("line2");
  context.strokeStyle = colour;
  context.fillStyle = colour;
  context.lineWidth = edge.on_way ? 2 : 1.25;
  const [end_x, end_y] = points[points.length - 1];
  const [from_x, from_y] = points[points.length - 2];
  const angle = Math.atan2(end_y - from_y, end_x - from_x);
  context.beginPath();
  context.moveTo(...points[0]);
  for (let i = 1; i < points.length - 1; i += 1) {
    context.arcTo(...points[i], ...points[i + 1], 6);
  }
  context.lineTo(end_x - 4 * Math.cos(angle), end_y - 4 * Math.sin(angle));
  context.stroke();
  arrowHead(context, end_x, end_y, angle);
}

function arrowHead(context: CanvasRenderingContext2D, x: number, y: number, angle: number): void {
  context.save();
  context.translate(x, y);
  context.rotate(angle);
  context.beginPath();
  context.moveTo(0, 0);
  context.lineTo(-6.5, -4);
  context.lineTo(-6.5, 4);
  context.fill();
  context.restore();
}

function drawSelection(context: CanvasRenderingContext2D, colours: Colours, box: GraphBox): void {
  // A line in the surface colour separates box and outline on a solid box.
  for (const [token, line, out] of [
    ["surface", 3, 1.5],
    ["accent", 2, 3.5],
  ] as const) {
    context.strokeStyle = colours.of(token);
    context.lineWidth = line;
    roundBox(context, box.x - out, box.y - out, box.width + 2 * out, box.height + 2 * out, 5 + out);
    context.stroke();
  }
}

/** A dashed outline around boxes that match the selection, or are about to. */
function drawRing(
  context: CanvasRenderingContext2D,
  colours: Colours,
  boxes: readonly GraphBox[],
): void {
  const left = Math.min(...boxes.map((b) => b.x)) - 4;
  const top = Math.min(...boxes.map((b) => b.y)) - 4;
  const right = Math.max(...boxes.map((b) => b.x + b.width)) + 4;
  const bottom = Math.max(...boxes.map((b) => b.y + b.height)) + 4;
  context.strokeStyle = colours.of("accent");
  context.lineWidth = 2;
  context.setLineDash([5, 3]);
  roundBox(context, left, top, right - left, bottom - top, 8);
  context.stroke();
  context.setLineDash([]);
}

/** Manual pairs carry a dot. */
function drawDot(context: CanvasRenderingContext2D, colours: Colours, box: GraphBox): void {
  context.beginPath();
  context.arc(box.x + box.width - 1, box.y + 1, 5, 0, 2 * Math.PI);
  context.fillStyle = colours.of("accent");
  context.fill();
  context.strokeStyle = colours.of("surface");
  context.lineWidth = 1.5;
  context.stroke();
}

function roundBox(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  width: number,
  height: number,
  radius: number,
): void {
  context.beginPath();
  context.roundRect(x, y, width, height, Math.min(radius, height / 2));
}
