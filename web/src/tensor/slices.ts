/** The slices of a tensor that a view shows, asked for together and on common scales. */

import { useMemo } from "preact/hooks";
import type { Side, Tensor } from "../api";
import { embedded, useBytes } from "../connection";
import { embeddedAxes } from "../embedded/answers";
import { axesInForce } from "./axes";
import { commonScale, decodeSlice, type Scale, type Slice } from "./slice";

export interface Slices {
  target: Slice | null;
  golden: Slice | null;
  difference: Slice | null;
  scale: Scale;
  difference_scale: Scale;
  error: string | null;
  is_loading: boolean;
}

const PAUSE_MS = 40;

/** The axes of the picture: those in force, or of a report those of the slice that it has. */
export function shownAxes(
  tensor: Tensor | null,
  asked: string[] | null,
  shape: number[],
  is_parameter: boolean,
  at: number[] | null,
): string[] {
  const inside = embedded && tensor && embeddedAxes(embedded, tensor.op, tensor.slot);
  return inside ?? axesInForce(asked, shape, is_parameter, at);
}

export function useSlices(
  tensor: Tensor | null,
  axes: string[],
  pixels: number,
  kind: Scale["kind"],
): Slices {
  const path = (side: Side | "difference", is_there: boolean) => {
    const shape = (tensor?.sides.target ?? tensor?.sides.golden)?.shape;
    if (!tensor || !is_there || !shape || shape.length !== axes.length) return null;
    if (axes.length === 0 || shape.includes(0)) return null;
    return (
      `slice?op=${tensor.op}&slot=${tensor.slot}&side=${side}&axes=${axes.join(",")}` +
      `&rows=${pixels}&columns=${pixels}`
    );
  };
  const has_target = tensor?.sides.target != null;
  const has_golden = tensor?.sides.golden != null;
  const target = useBytes(path("target", has_target), PAUSE_MS);
  const golden = useBytes(path("golden", has_golden), PAUSE_MS);
  const difference = useBytes(path("difference", tensor?.difference != null), PAUSE_MS);
  return useMemo(() => {
    const decoded = [target.data, golden.data, difference.data].map((bytes) =>
      bytes ? decodeSlice(bytes) : null,
    );
    return {
      target: decoded[0],
      golden: decoded[1],
      difference: decoded[2],
      scale: commonScale([decoded[0], decoded[1]], kind),
      difference_scale: commonScale([decoded[2]], "diverging"),
      error: target.error ?? golden.error ?? difference.error,
      is_loading: target.loading || golden.loading || difference.loading,
    };
  }, [
    target.data,
    golden.data,
    difference.data,
    kind,
    target.loading,
    golden.loading,
    difference.loading,
  ]);
}
