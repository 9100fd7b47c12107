/** The contents of a report: the server's answers at the time it was made. */

import type { Coverage, Events, Graph, Info, Operator, Row, Scalars, Side, Steps, Tensor, Trace, Values } from "../api";

export interface Contents {
  /** Seconds since 1970, in UTC. */
  made: number;
  /** Whether only the result of a comparison was available, without the dumps. */
  is_saved: boolean;
  info: Info;
  coverage: Coverage;
  /** The first events. */
  events: Events;
  /** The scalar output that the server chooses; null for a single step. */
  scalars: Scalars | null;
  trace: Trace;
  /** Operators over steps, if `rows` is incomplete. */
  steps: Steps | null;
  /** In execution order: all, or the worst. */
  rows: Row[];
  details: Record<string, Operator>;
  graphs: Layout[];
  /** For each operator, the index in `graphs` of the layout opened around it. */
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
  /** The axes of the slice in the file; null for a scalar. */
  axes: string[] | null;
  /** Slices in base64, or why one is missing. */
  pictures: Partial<Record<Side | "difference", string | { error: string }>>;
  /** Values around some positions of the slice. */
  values: { row: number; column: number; values: Values }[];
}

// Unit tests have no document, or only a partial one.
const element = globalThis.document?.getElementById?.("opscope-data") ?? null;

/** Whether this page is a report, which contains its answers and has no server. */
export const is_report = element !== null;

/** Reads the contents from compressed JSON in base64. */
export async function readContents(): Promise<Contents> {
  const letters = atob(element!.textContent!.trim());
  const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
  const packed = new Blob([bytes]).stream();
  const text = await new Response(packed.pipeThrough(new DecompressionStream("gzip"))).text();
  return JSON.parse(text) as Contents;
}
