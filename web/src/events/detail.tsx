/** The selected event: operator and time, the decoded status, or the bytes before and after. */

import type { ComponentChildren } from "preact";
import { go } from "../address";
import type { DumpEvent, EventDetail, NonFinite, Overwrite } from "../api";
import { useAnswer } from "../connection";
import { Glyph } from "../glyph";
import { Name } from "../name";
import { shortName, visible } from "../names";
import { formatCount } from "../numbers";
import { Chain } from "../overview/chain";
import { plainText } from "../overview/verdict";
import type { Page } from "../page";
import { filled, slotLabel, t } from "../texts";
import { ChangedBytes } from "./changed-bytes";
import { StatusParts } from "./status";
import { changeWords, isoTime, rangesWords } from "./words";

export function EventPane({ page, id }: { page: Page; id: number }) {
  const answer = useAnswer<EventDetail>(`event/${id}`);
  const event = answer.data?.id === id ? answer.data : null;
  if (answer.error) {
    return (
      <p class="trouble">
        {t.cannot_show}: {answer.error}
      </p>
    );
  }
  if (!event) {
    return (
      <div class="skeletons" role="status" aria-label={t.loading}>
        <span class="skeleton" />
        <span class="skeleton" />
      </div>
    );
  }
  return (
    <>
      <Head event={event} />
      <EventFacts event={event} />
      {event.text !== undefined && (
        <section class="part">
          <p>{plainText(event.text)}</p>
        </section>
      )}
      {event.overflow && <StatusParts overflow={event.overflow} place="" />}
      {event.overwrite && <OverwritePart overwrite={event.overwrite} event={event} />}
      {event.overwrite && <ChangedBytes bytes={event.bytes} />}
      {event.non_finite && <NonFinitePart found={event.non_finite} />}
      {event.op !== null && event.op === page.selected && page.info.golden === null && (
        <Chain page={page} />
      )}
    </>
  );
}

function Head({ event }: { event: DumpEvent }) {
  const { op } = event;
  const { last } = shortName(event.op_name, event.op_type);
  const is_named = event.op_name !== "" || event.op_type !== "";
  return (
    <header class="pane-head">
      <Glyph sign="fail" size={16} label={t.event_kind[event.kind]} />
      <h2 title={visible(event.op_name)}>
        <bdi>{is_named ? last : t.nameless}</bdi>
      </h2>
      <bdi class="type">{visible(event.op_type)}</bdi>
      <span class="grow" />
      {op !== null && (
        <button type="button" class="quiet" onClick={() => go({ view: "tensor", op })}>
          {t.open_tensor} <kbd>Enter</kbd>
        </button>
      )}
    </header>
  );
}

function EventFacts({ event }: { event: DumpEvent }) {
  const facts: [string, ComponentChildren][] = [];
  if (event.step !== null) facts.push([t.event_column.place, formatCount(event.step)]);
  if (event.rank !== null) facts.push(["rank", event.rank]);
  if (event.task !== null) facts.push([t.task, formatCount(event.task)]);
  if (event.stream !== null) facts.push([t.stream, formatCount(event.stream)]);
  if (event.time_us !== null) facts.push([t.time, `${isoTime(event.time_us)} UTC`]);
  if (event.text === undefined) facts.push([t.file, <code>{visible(event.file)}</code>]);
  return (
    <>
      <dl class="event-facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <bdi>{value}</bdi>
            </dd>
          </div>
        ))}
      </dl>
      {event.op === null && <p class="note">{t.not_in_dump}</p>}
    </>
  );
}

function OverwritePart({ overwrite, event }: { overwrite: Overwrite; event: DumpEvent }) {
  const seen = { after: nameOf(event.op_name), before: nameOf(overwrite.seen_before ?? "") };
  const how = overwrite.how === null ? undefined : t.overwrite_how[overwrite.how];
  return (
    <section class="part">
      <h3>
        <span>{t.watched_value}</span>
        <span>{t.bytes_changed(overwrite.n_bytes, overwrite.n_ranges)}</span>
      </h3>
      <p>
        <Name name={overwrite.watched} type={overwrite.watched_type} />{" "}
        <span class="dim">{slotLabel(overwrite.slot)}</span>
      </p>
      <p>
        {rangesWords(overwrite.ranges, overwrite.n_ranges)}
        {overwrite.first_element !== null &&
          ` · ${t.first_element(overwrite.first_element)}: ${changeWords(overwrite)}`}
      </p>
      <p class="dim">
        {overwrite.seen_before === null ? (
          <>
            {t.seen_after} {seen.after}
          </>
        ) : (
          filled(t.between, seen)
        )}
        {overwrite.how !== null && `: ${how ?? visible(overwrite.how)}`}
      </p>
      {[overwrite.source, overwrite.watched_source].map(
        (line, i) =>
          line && (
            <p key={i} class="dim">
              {i === 0 ? t.line : t.watched_value}{" "}
              <code>
                <bdi>{visible(line)}</bdi>
              </code>
            </p>
          ),
      )}
    </section>
  );
}

function nameOf(name: string) {
  return (
    <code>
      <bdi>{visible(name)}</bdi>
    </code>
  );
}

function NonFinitePart({ found }: { found: NonFinite }) {
  const counts = [
    ["NaN", found.n_nan],
    ["+Inf", found.n_pos_inf],
    ["−Inf", found.n_neg_inf],
  ] as const;
  return (
    <section class="part">
      <h3>
        <span>{t.event_kind.non_finite}</span>
      </h3>
      <p>
        {[
          found.slot === null ? null : slotLabel(found.slot),
          found.element === null ? null : t.seen_at(found.element),
        ]
          .filter(Boolean)
          .join(", ")}
        {": "}
        <b>{visible(found.value)}</b>
      </p>
      <p>{t.origin[found.origin] ?? visible(found.origin)}</p>
      <p class="dim">{t.said_by_capture}</p>
      <dl class="metrics">
        {counts.map(([name, n]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{formatCount(n)}</dd>
          </div>
        ))}
      </dl>
      {[found.module, found.source].filter(Boolean).map((line, i) => (
        <p key={i}>
          <code>
            <bdi>{visible(line)}</bdi>
          </code>
        </p>
      ))}
    </section>
  );
}
