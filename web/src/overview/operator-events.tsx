/** Events of the selected operator: the status of its overflow, and links. */

import { go } from "../address";
import type { DumpEvent } from "../api";
import { StatusParts } from "../events/status";
import { whatWords } from "../events/words";
import { Glyph } from "../glyph";
import type { Page } from "../page";
import { t } from "../texts";

export function OperatorEvents({ page }: { page: Page }) {
  const operator = page.operator.data;
  if (!operator || operator.id !== page.selected) return null;
  const record = operator.events.find((event) => event.overflow !== null);
  const others = operator.events.filter((event) => event !== record);
  return (
    <>
      {record?.overflow && (
        <StatusParts
          overflow={record.overflow}
          place={record.rank === null ? "" : t.rank(record.rank)}
        />
      )}
      {others.length > 0 && (
        <section class="part">
          <h3>
            <span>{t.views.events}</span>
          </h3>
          {others.map((event) => (
            <EventLink key={event.id} event={event} />
          ))}
        </section>
      )}
    </>
  );
}

function EventLink({ event }: { event: DumpEvent }) {
  const open = () => go({ view: "events", event: event.id });
  return (
    <p class="event-link">
      <Glyph sign="fail" label={t.event_kind[event.kind]} />
      <button type="button" class="link" onClick={open}>
        {t.event_kind[event.kind]}
      </button>
      <bdi>{whatWords(event)}</bdi>
    </p>
  );
}
