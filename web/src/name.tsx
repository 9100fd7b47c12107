/** An operator's name, isolated in its text direction, in full in the tooltip. */

import { font, textWidth } from "./canvas";
import { fitName, shortName, visible, type ShortName } from "./names";

interface NameProps {
  name: string;
  type: string;
  /** Pixels for name and type; without it the name is not cut. */
  width?: number;
  short?: ShortName;
  has_type?: boolean;
  /** Its step, rank and execution, if others have its name; never cut. */
  note?: string;
}

const PLAIN = font(13);
const STRONG = font(13, 500);
const NOTE = font(11, 500);
const GAP = 12;
const measure = (text: string, is_strong: boolean) => textWidth(text, is_strong ? STRONG : PLAIN);

export function Name({ name, type, width, short, has_type = true, note = "" }: NameProps) {
  const parts = short ?? shortName(name, type);
  const shown_type = has_type ? visible(type) : "";
  const fitted =
    width === undefined
      ? { ...parts, type: shown_type }
      : fitName(parts, shown_type, width - (note ? textWidth(note, NOTE) + GAP : 0), measure);
  return (
    <span class="name" title={`${visible(type)} ${visible(name)}`}>
      <bdi>
        <span class="path">{fitted.path}</span>
        <span class="last">{fitted.last}</span>
      </bdi>
      {fitted.type && <bdi class="type">{fitted.type}</bdi>}
      {note && <small class="note">{note}</small>}
    </span>
  );
}

/** Name and type as plain text, for sentences and labels. */
export function plainName(operator: { op_type: string; op_name: string }): string {
  const { path, last } = shortName(operator.op_name, operator.op_type);
  return `${visible(operator.op_type)} ${path}${last}`;
}
