/** The slices of a tensor in a view, requested together and on common scales. */

import { useMemo } from "preact/hooks";
import type { PicturedSide, Slot, Tensor } from "../api";
import { embedded, useBytes } from "../connection";
import { embeddedAxes } from "../embedded/answers";
import { t } from "../texts";
import { axesInForce } from "./axes";
import { commonScale, decodeSlice, type Scale, type Slice } from "./slice";

export interface Slices {
  target: Slice | null;
  golden: Slice | null;
  reference: Slice | null;
  difference: Slice | null;
  scale: Scale;
  difference_scale: Scale;
  error: string | null;
  /** Why a picture is missing although nothing failed. */
  note: string | null;
  is_loading: boolean;
}

const PAUSE_MS = 40;

/** The axes of the picture: those in force or, in a report, those of its slice. */
export function shownAxes(
  tensor: Tensor | null,
  asked: string[] | null,
  shape: number[],
  { parameter, change }: Slot,
  at: number[] | null,
): string[] {
  const inside = embedded && tensor && embeddedAxes(embedded, tensor.op, tensor.slot);
  return inside ?? axesInForce(asked, shape, parameter !== null, at, change?.order ?? null);
}

function fits(axes: string[], shape: number[]): boolean {
  if (axes.length === 0 || axes.length !== shape.length || shape.includes(0)) return false;
  return axes.every((role, i) => role === "r" || role === "c" || Number(role) < shape[i]);
}

function sameShape(a: number[] | undefined, b: number[] | undefined): boolean {
  return a !== undefined && b !== undefined && a.join() === b.join();
}

export function useSlices(
  tensor: Tensor | null,
  axes: string[],
  pixels: number,
  kind: Scale["kind"],
): Slices {
  const path = (side: PicturedSide | "difference", is_there: boolean) => {
    const shapes = tensor && [tensor.sides.target?.shape, tensor.sides.golden?.shape];
    if (!tensor || !shapes || !is_there) return null;
    const shape = side === "difference" ? (shapes[0] ?? shapes[1]) : tensor.sides[side]?.shape;
    // The axes are those of one side; the other may have another shape.
    if (!shape || !fits(axes, shape)) return null;
    if (side === "difference" && !sameShape(shapes[0], shapes[1])) return null;
    return (
      `slice?op=${tensor.op}&slot=${tensor.slot}&side=${side}&axes=${axes.join(",")}` +
      `&rows=${pixels}&columns=${pixels}`
    );
  };
  const has_target = tensor?.sides.target != null;
  const has_golden = tensor?.sides.golden != null;
  const is_apart =
    has_target && has_golden && !sameShape(tensor.sides.target?.shape, tensor.sides.golden?.shape);
  const target = useBytes(path("target", has_target), PAUSE_MS);
  const golden = useBytes(path("golden", has_golden), PAUSE_MS);
  const reference = useBytes(path("reference", tensor?.sides.reference != null), PAUSE_MS);
  const difference = useBytes(path("difference", tensor?.difference != null), PAUSE_MS);
  return useMemo(() => {
    const decoded = [target.data, golden.data, difference.data, reference.data].map((bytes) =>
      bytes ? decodeSlice(bytes) : null,
    );
    return {
      target: decoded[0],
      golden: decoded[1],
      difference: decoded[2],
      reference: decoded[3],
      scale: commonScale([decoded[0], decoded[1], decoded[3]], kind),
      difference_scale: commonScale([decoded[2]], "diverging"),
      error: target.error ?? golden.error ?? difference.error,
      note: is_apart ? t.other_shapes : null,
      is_loading: target.loading || golden.loading || difference.loading,
    };
  }, [
    target.data,
    golden.data,
    difference.data,
    reference.data,
    kind,
    is_apart,
    target.loading,
    golden.loading,
    difference.loading,
  ]);
}
