/** Events in words: time, place and effect. */

import type { DumpEvent, Overwrite } from "../api";
import { visible } from "../names";
import { formatCount } from "../numbers";
import { slotLabel, t } from "../texts";
import { overflowWords } from "./status";

/** The time of day, to the microsecond. */
export function timeOfDay(time_us: number | null): string {
  return time_us === null ? "–" : isoTime(time_us).slice(11);
}

/** `2023-11-14 22:13:20.000001`, in UTC; the number of microseconds if it is not a valid date. */
export function isoTime(time_us: number): string {
  const seconds = Math.floor(time_us / 1e6);
  const date = new Date(seconds * 1000);
  if (Number.isNaN(date.getTime()) || date.getUTCFullYear() > 9999) return String(time_us);
  const micros = String(time_us - seconds * 1e6).padStart(6, "0");
  return `${date.toISOString().slice(0, 19).replace("T", " ")}.${micros}`;
}

export function taskWords(event: DumpEvent): string {
  const known = [event.task, event.stream].filter((n): n is number => n !== null);
  return known.length === 0 ? "–" : known.map(formatCount).join(" · ");
}

export function whatWords(event: DumpEvent): string {
  if (event.text !== undefined) return visible(event.text);
  if (event.overflow) {
    const { status, words } = overflowWords(event.overflow);
    return [status, words].filter(Boolean).join(" · ");
  }
  if (event.overwrite) {
    const { watched, slot } = event.overwrite;
    const bytes = rangesWords(event.overwrite.ranges, event.overwrite.n_ranges);
    return `${visible(watched)} ${slotLabel(slot)} · ${bytes}`;
  }
  const found = event.non_finite;
  if (!found) return "";
  const place = found.slot === null ? [] : [slotLabel(found.slot)];
  if (found.element !== null) place.push(t.seen_at(found.element));
  return [visible(found.value), ...place].join(" · ");
}

/** The first range, inclusive, and the number of others. */
export function rangesWords(ranges: [number, number][], n_ranges: number): string {
  const first = ranges[0];
  if (!first) return t.bytes_changed(0, 0);
  const more = Math.max(n_ranges, ranges.length) - 1;
  const rest = more > 0 ? t.and_more_ranges(more) : "";
  return `${t.bytes_from_to(first[0], Math.max(first[0], first[1] - 1))}${rest}`;
}

export function changeWords({ before, after }: Overwrite): string {
  return `${visible(before)} → ${visible(after)}`;
}
