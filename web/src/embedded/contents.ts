/** What a report has inside: the answers of the server that it was made with. */

import type { Coverage, Events, Graph, Info, Operator, Row, Scalars, Side, Steps, Tensor, Trace, Values } from "../api";

export interface Contents {
  /** Seconds since 1970, in UTC. */
  made: number;
  /** Whether only the result of a comparison was at hand, without the dumps. */
  is_saved: boolean;
  info: Info;
  coverage: Coverage;
  /** The first events. */
  events: Events;
  /** The scalar output that the server chooses; none of a single step. */
  scalars: Scalars | null;
  trace: Trace;
  /** Operators over steps, where `rows` lacks some of them. */
  steps: Steps | null;
  /** In the order of execution: all, or the worst. */
  rows: Row[];
  details: Record<string, Operator>;
  graphs: Layout[];
  /** For an operator the place in `graphs` of the layout that is opened around it. */
  graph_of: Record<string, number>;
  tensors: EmbeddedTensor[];
}

export interface Layout {
  rank: number | null;
  step: number | null;
  open: string[];
  graph: Graph;
}

export interface EmbeddedTensor {
  tensor: Tensor;
  /** The axes of the slice that is there; none of a scalar. */
  axes: string[] | null;
  /** Slices in base64, or why there is none. */
  pictures: Partial<Record<Side | "difference", string | { error: string }>>;
  /** Values around some places of the slice. */
  values: { row: number; column: number; values: Values }[];
}

// Unit tests have no document, or a part of one.
const element = globalThis.document?.getElementById?.("opscope-data") ?? null;

/** Whether this page is a report, which has its answers inside and no server. */
export const is_report = element !== null;

/** The contents, read from compressed JSON in base64. */
export async function readContents(): Promise<Contents> {
  const letters = atob(element!.textContent!.trim());
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const packed = new Blob([bytes]).stream();
  const text = await new Response(packed.pipeThrough(new DecompressionStream("gzip"))).text();
  return JSON.parse(text) as Contents;
}
