/** The pictures of a slice side by side, and the values under the pointer. */

import { useState } from "preact/hooks";
import { go } from "../address";
import type { Slot, Tensor, TensorSide } from "../api";
import { is_report } from "../connection";
import { Swatch } from "../glyph";
import { visible } from "../names";
import { formatNumber } from "../numbers";
import type { Page } from "../page";
import { sideName } from "../sides";
import { filled, t } from "../texts";
import { differenceWords, indexAt, onlyRow } from "./axes";
import { AxesMapper } from "./axes-mapper";
import { Neighbours, PointerWords, useValues } from "./neighbours";
import { Picture, ScaleBar } from "./picture";
import { type Scale } from "./slice";
import { useSlices, type Slices } from "./slices";

interface SlicePanesProps {
  page: Page;
  slot: Slot;
  tensor: Tensor | null;
  side: TensorSide | null;
  axes: string[];
  at: number[];
  place: { row: number; column: number } | null;
  is_swapped: boolean;
}

const PIXELS = 512;

export function SlicePanes(props: SlicePanesProps) {
  const { page, tensor, side, axes, at, place } = props;
  const [kind, setKind] = useState<Scale["kind"]>("diverging");
  const [is_whole, setWhole] = useState(false);
  const slices = useSlices(tensor, axes, PIXELS, kind);
  const values = useValues(tensor, axes, place);
  const theme = document.documentElement.dataset.theme ?? "light";
  if (side?.shape.includes(0)) return <p class="empty">{t.no_elements}</p>;
  const why = tensor?.missing.target ?? tensor?.missing.golden ?? slices.error;
  return (
    <section class="slice-panes">
      <div class="slice-tools">
        {side && <AxesMapper page={page} side={side} axes={axes} at={at} />}
        <span class="grow" />
        <Choice
          value={kind}
          values={["diverging", "sequential"]}
          words={{ diverging: t.diverging, sequential: t.sequential }}
          onChange={setKind}
        />
        <Choice
          value={is_whole ? "one" : "fit"}
          values={["one", "fit"]}
          words={{ one: t.one_to_one, fit: t.fit }}
          onChange={(v) => setWhole(v === "one")}
        />
      </div>
      {why && <p class="dim">{filled(t.no_slice, { why: visible(why) })}</p>}
      {!why && slices.note && <p class="dim">{slices.note}</p>}
      <ThreePictures {...props} slices={slices} theme={theme} is_whole={is_whole} />
      <div class="slice-foot">
        <div class="slice-words">
          <ScaleBar scale={slices.scale} theme={theme} />
          <DifferenceWords tensor={tensor} />
          {values && place && <PointerWords values={values} place={place} />}
          {is_report && place && !values && <p class="dim">{t.report_no_values}</p>}
          <p class="dim">{page.info.golden ? t.pointer_hint : t.pointer_hint_one}</p>
          {is_report && tensor && side && <p class="dim">{t.report_one_slice}</p>}
        </div>
        {tensor && values && place && (
          <Neighbours
            tensor={tensor}
            axes={axes}
            place={place}
            scale={slices.scale}
            difference_scale={slices.difference_scale}
            values={values}
          />
        )}
      </div>
    </section>
  );
}

interface ThreePicturesProps extends SlicePanesProps {
  slices: Slices;
  theme: string;
  is_whole: boolean;
}

function ThreePictures(props: ThreePicturesProps) {
  const { page, slot, tensor, side, axes, place, slices, theme, is_whole, is_swapped } = props;
  const point = (row: number, column: number) => {
    if (!side) return;
    go({
      op: page.selected,
      slot: slot.id,
      at: indexAt(axes, side.shape, row, column),
      ax: page.address.ax,
    });
  };
  const order = is_swapped ? (["golden", "target"] as const) : (["target", "golden"] as const);
  const is_pair = page.info.golden !== null;
  const third = tensor?.sides.reference ? (["reference"] as const) : [];
  const shown = is_pair ? [...order, ...third, "difference" as const] : (["target"] as const);
  const words = {
    target: sideName("target"),
    golden: sideName("golden"),
    reference: sideName("reference"),
    difference: t.difference,
  };
  const row = onlyRow(axes, side?.shape ?? [], tensor?.difference?.ranges ?? null);
  return (
    <div class={`pictures large ${is_pair ? (third.length > 0 ? "of-four" : "of-three") : "of-one"} ${is_whole ? "is-whole" : ""}`}>
      {shown.map((name, i) => (
        <figure key={i}>
          <figcaption>
            {name !== "difference" && <Swatch side={name} />} <bdi>{words[name]}</bdi>
            {name === "difference" && (
              <span class="dim">±{formatNumber(slices.difference_scale.high)}</span>
            )}
            {name === "difference" && row !== null && <b class="only">{t.only_row(row)}</b>}
            {i === 0 && side && <span class="grow dim axes-words">{axesCaption(axes, side)}</span>}
          </figcaption>
          {slices[name] ? (
            <Picture
              slice={slices[name]}
              theme={theme}
              label={words[name]}
              pointer={place}
              scale={name === "difference" ? slices.difference_scale : slices.scale}
              has_margin={name === "difference"}
              onPoint={point}
              is_whole={is_whole}
            />
          ) : (
            <div class={tensor && !slices.is_loading ? "picture no-data" : "picture skeleton"} />
          )}
        </figure>
      ))}
    </div>
  );
}

/** `C ↓ · H×W →` */
function axesCaption(axes: string[], side: TensorSide): string {
  const names = (role: string) =>
    side.axes
      .filter((_, axis) => axes[axis] === role)
      .map(visible)
      .join("×");
  return [names("r") && `${names("r")} ↓`, names("c") && `${names("c")} →`]
    .filter(Boolean)
    .join(" · ");
}

function DifferenceWords({ tensor }: { tensor: Tensor | null }) {
  const difference = tensor?.difference;
  if (!difference) return null;
  return (
    <p>
      <b>{differenceWords(difference, tensor.sides.target?.shape ?? null)}</b>
    </p>
  );
}

interface ChoiceProps<T extends string> {
  value: T;
  values: T[];
  words: Record<T, string>;
  onChange: (value: T) => void;
}

export function Choice<T extends string>({ value, values, words, onChange }: ChoiceProps<T>) {
  return (
    <span class="segments" role="group">
      {values.map((v) => (
        <button type="button" key={v} aria-pressed={v === value} onClick={() => onChange(v)}>
          {words[v]}
        </button>
      ))}
    </span>
  );
}
