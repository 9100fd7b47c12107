/** The verdict: one sentence, up to three pieces of evidence, and the counts. */

import type { ComponentChildren } from "preact";
import { currentAddress, formatAddress, go, type Address } from "../address";
import type { Info, Operators, Overflow, Ranges, Verdict, VerdictKind } from "../api";
import { useAnswer } from "../connection";
import { overflowWords } from "../events/status";
import { rangesWords } from "../events/words";
import { Disc, Glyph, type Sign } from "../glyph";
import { plainName } from "../name";
import { shortName, visible } from "../names";
import {
  formatCount,
  formatFactor,
  formatLimit,
  formatNumber,
  formatRanges,
  isPart,
  toFloat,
} from "../numbers";
import { useNews } from "../news";
import type { Page } from "../page";
import { filled, slotLabel, t, type SentenceKey } from "../texts";

/** Kinds that name a culprit. */
const BLAMES: VerdictKind[] = [
  "own",
  "weight",
  "bias",
  "input",
  "makes_nan",
  "makes_inf",
  "overflows",
  "overflow_recorded",
];

export function VerdictHeader({ page }: { page: Page }) {
  return (
    <section class="verdict">
      <VerdictDisc page={page} />
      <div class="said" role="status">
        <h1>
          <Sentence page={page} is_link={true} />
        </h1>
        <p class="evidence">
          {evidence(page).map((fact, i) => (
            <span key={i}>{fact}</span>
          ))}
        </p>
      </div>
      <Facts page={page} />
    </section>
  );
}

/** The disc of the verdict; no green one before the run is over. */
export function VerdictDisc({ page }: { page: Page }) {
  const sign = discSign(page.info.verdict);
  const is_open = useNews()?.state === "running" && sign === "pass";
  return <Disc sign={is_open ? "skip" : sign} />;
}

function discSign(verdict: Verdict): Sign {
  if (BLAMES.includes(verdict.kind)) return "fault";
  if (
    verdict.kind === "unknown" ||
    verdict.kind === "nothing" ||
    verdict.kind === "no_statistics" ||
    verdict.kind === "unreadable" ||
    verdict.kind === "waiting" ||
    verdict.kind === "reading" ||
    verdict.kind === "inherited"
  )
    return "skip";
  return verdict.status;
}

export function Sentence({ page, is_link }: { page: Page; is_link: boolean }) {
  const { info } = page;
  const { verdict } = info;
  const blames = BLAMES.includes(verdict.kind);
  const is_running = useNews()?.state === "running";
  const to = is_link ? { op: verdict.op, slot: verdict.slot } : null;
  const op =
    verdict.op === null ? (
      t.an_operator
    ) : (
      <OperatorName named={verdict} blames={blames} to={to} />
    );
  const { largest } = verdict;
  const parameter = verdict.parameter ?? verdict.op_name;
  const parts: Record<string, ComponentChildren> = {
    op,
    parameter: parameter ? (
      <code>
        <bdi>{visible(parameter)}</bdi>
      </code>
    ) : (
      t.the_model_input
    ),
    n: formatCount(info.slots?.compared ?? 0),
    dtype: verdict.dtype ?? "",
    status: verdict.overflow ? <StatusWords overflow={verdict.overflow} /> : "",
    bytes: verdict.bytes ? rangesWords(exclusive(verdict.bytes), verdict.bytes.length) : "",
    share: t.of_elements(verdict.n_bad ?? 0, verdict.n_elements ?? 0),
    slots: t.slots_are(verdict.n_bad ?? 0),
  };
  if (verdict.kind === "finite" && largest) {
    parts.operators = t.n_operators(info.n_operators);
    parts.share = t.of_operators(info.n_operators - (verdict.n_bad ?? 0), info.n_operators);
    parts.size = formatNumber(largest.value);
    parts.op = (
      <OperatorName named={largest} blames={false} to={is_link ? { op: largest.op } : null} />
    );
  }
  const steps = new Set(info.places.map((place) => place.step)).size;
  const lead =
    verdict.step !== null && steps > 1 && verdict.op !== null ? t.in_step(verdict.step) : "";
  return (
    <>
      {lead}
      {verdict.kind === "contract" || verdict.kind === "finding"
        ? plainText(verdict.text)
        : filled(t.sentence[sentenceKey(verdict, is_running)], parts)}
    </>
  );
}

/** Values that are all finite have several sentences. */
function sentenceKey({ kind, largest, n_bad }: Verdict, is_running: boolean): SentenceKey {
  if (kind === "contract" || kind === "finding") return "nothing";
  if (kind !== "finite") return kind;
  if (is_running) return "finite_so_far";
  if (!largest) return "no_size";
  return (n_bad ?? 0) > 0 ? "finite_part" : "finite";
}

/** A sentence of the server, without its first word, which the disc says, and with code marked. */
export function plainText(text: string): ComponentChildren[] {
  const sentence = text.replace(/^([A-Z ]+|the target's tensor): /, "");
  const pieces = (sentence[0] ?? "").toUpperCase() + sentence.slice(1);
  return pieces.split("`").map((piece, i) =>
    i % 2 === 0 ? (
      visible(piece)
    ) : (
      <code key={i}>
        <bdi>{visible(piece)}</bdi>
      </code>
    ),
  );
}

/** `0x400, accumulation` */
function StatusWords({ overflow }: { overflow: Overflow }) {
  const { status, words } = overflowWords(overflow);
  return (
    <>
      <b>{status}</b>
      {words && `, ${words}`}
    </>
  );
}

function exclusive(ranges: Ranges): Ranges {
  return ranges.map(([first, last]) => [first, last + 1]);
}

interface OperatorNameProps {
  named: { op_name: string; op_type: string };
  blames: boolean;
  /** The selection that it leads to, if it is a link. */
  to: Partial<Address> | null;
}

function OperatorName({ named, blames, to }: OperatorNameProps) {
  if (to) return <OperatorLink verdict={named} blames={blames} to={to} />;
  return (
    <b>
      <bdi>{plainName(named)}</bdi>
    </b>
  );
}

interface OperatorLinkProps {
  verdict: { op_name: string; op_type: string };
  blames: boolean;
  to: Partial<Address>;
}

function OperatorLink({ verdict, blames, to }: OperatorLinkProps) {
  const select = (event: MouseEvent) => {
    // With a modifier key the browser opens the address elsewhere.
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a
      class={`oplink ${blames ? "blamed" : ""}`}
      href={formatAddress({ ...currentAddress(), ...to })}
      onClick={select}
      title={visible(verdict.op_name)}
    >
      <bdi>{plainName(verdict)}</bdi>
    </a>
  );
}

function evidence(page: Page): ComponentChildren[] {
  const { info } = page;
  const { verdict } = info;
  const facts: ComponentChildren[] = [];
  if (verdict.kind === "agree") return [<Closest page={page} />];
  if (verdict.kind === "nothing") return [t.nothing_hint];
  if (verdict.finding) facts.push(<b>{plainText(verdict.finding)}</b>);
  const value = toFloat(verdict.metric?.value ?? null);
  if (verdict.metric && value !== null) {
    const limit = toFloat(verdict.metric.limit);
    facts.push(
      <>
        {verdict.slot ? `${slotLabel(verdict.slot)}: ` : ""}
        <b>
          {verdict.metric.name} {formatNumber(verdict.metric.value)}
        </b>
        {limit !== null && limit > 0 && `, ${limitWords(value, limit)}`}
      </>,
    );
  }
  if (verdict.box) {
    const { n_differing, n_elements, ranges, region } = verdict.box;
    const box = <b>{region ?? formatRanges(ranges, null)}</b>;
    facts.push(
      <>
        {t.of_elements_beyond(n_differing, n_elements)}
        {isPart(ranges, n_elements) && (
          <>
            , <b>{filled(t.all_in, { box })}</b>
          </>
        )}
      </>,
    );
  }
  if (verdict.limit) {
    const { largest, needed } = verdict.limit;
    const words = needed === null ? t.beyond_largest : t.needs_more;
    facts.push(words(verdict.dtype ?? "", formatNumber(largest), formatNumber(needed)));
  }
  if (verdict.overflow && verdict.kind !== "overflow_recorded") {
    const status = <StatusWords overflow={verdict.overflow} />;
    facts.push(filled(t.status_is, { status }));
  }
  if (verdict.n_after > 0 && verdict.kind === "finding") {
    facts.push(t.more_findings(verdict.n_after));
  } else if (verdict.n_after > 0 && verdict.kind === "overwritten") {
    facts.push(t.more_overwrites(verdict.n_after));
  } else if (verdict.n_after > 0 && verdict.kind === "overflow_recorded") {
    facts.push(t.more_overflows(verdict.n_after));
  } else if (verdict.n_after > 0 && verdict.op !== null) {
    facts.push(info.golden ? t.inherit(verdict.n_after) : t.hand_on(verdict.n_after));
  }
  if (verdict.rank !== null && new Set(info.places.map((p) => p.rank)).size > 1) {
    facts.push(<span class="chip">{t.on_rank(verdict.rank)}</span>);
  }
  if (facts.length === 0 && info.near_edge > 0) facts.push(t.near_hint(info.near_edge));
  if (verdict.kind === "unknown" || verdict.kind === "inherited") {
    facts.push(
      <>
        {t.unknown_hint}{" "}
        <button type="button" class="link" onClick={() => go({ view: "coverage" })}>
          {t.show_coverage}
        </button>
      </>,
    );
  }
  return facts.slice(0, 3);
}

/** Some metrics must not fall below their limit; a factor would mislead for those. */
function limitWords(value: number, limit: number): string {
  if (value < limit) return t.limit_is(formatLimit(limit));
  return t.times_limit(formatFactor(value / limit));
}

/** For agreeing runs: the value closest to its limit. */
function Closest({ page }: { page: Page }) {
  const answer = useAnswer<Operators>("operators?q=&sort=-error&offset=0&limit=1");
  const row = answer.data?.rows[0];
  const limit = page.info.metric.limit;
  const error = toFloat(row?.error);
  if (!row || error === null) return <>{t.agree_hint}</>;
  if (error === 0) return <>{t.agree_equal}</>;
  const op = <OperatorLink verdict={row} blames={false} to={{ op: row.id }} />;
  const share = limit ? formatFactor(error / limit).replace("×", "") : formatNumber(row.error);
  return (
    <>
      {t.agree_hint} {filled(t.agree_closest, { op, share })}
    </>
  );
}

function Facts({ page }: { page: Page }) {
  const { info } = page;
  const { counts } = info;
  const filter = (q: string) => () => go({ q, view: "overview" });
  const first = info.first_non_finite;
  return (
    <dl class="facts">
      <div>
        <dt>{t.fact_operators}</dt>
        <dd class="counts">
          {(["fail", "warn", "pass", "skip"] as const).map(
            (status) =>
              counts[status] > 0 && (
                <button
                  type="button"
                  key={status}
                  onClick={filter(`status:${status}`)}
                  title={t.status[status]}
                >
                  <Glyph
                    sign={
                      status === "fail" &&
                      info.verdict.op !== null &&
                      BLAMES.includes(info.verdict.kind)
                        ? "fault"
                        : status
                    }
                    label={t.status[status]}
                  />
                  {formatCount(counts[status])}
                </button>
              ),
          )}
          {info.n_operators === 0 && "0"}
        </dd>
      </div>
      <div>
        <dt>{t.fact_non_finite}</dt>
        <dd>
          {first === null ? (
            t.none
          ) : (
            <button type="button" onClick={() => go({ op: first })}>
              #{formatCount(first)}
            </button>
          )}
        </dd>
      </div>
      {info.first_overflow && <FirstOverflow first={info.first_overflow} />}
      {info.golden === null && (
        <div>
          <dt>{t.fact_edge}</dt>
          <dd>
            {info.near_edge > 0 ? (
              <button type="button" onClick={filter("headroom<2^4")}>
                <Glyph sign="warn" /> {formatCount(info.near_edge)}
              </button>
            ) : (
              t.none
            )}
          </dd>
        </div>
      )}
      {info.slots && (
        <div>
          <dt>{t.fact_slots}</dt>
          <dd>
            <button type="button" onClick={() => go({ view: "coverage" })}>
              {formatCount(info.slots.compared)} / {formatCount(info.slots.total)}
            </button>
          </dd>
        </div>
      )}
      {info.n_problems > 0 && (
        <div>
          <dt>{t.fact_problems}</dt>
          <dd>
            <button type="button" onClick={() => go({ view: "coverage" })}>
              <Glyph sign="warn" /> {formatCount(info.n_problems)}
            </button>
          </dd>
        </div>
      )}
    </dl>
  );
}

function FirstOverflow({ first }: { first: NonNullable<Info["first_overflow"]> }) {
  const { op, op_name, op_type } = first;
  const { last } = shortName(op_name, op_type);
  const is_named = op_name !== "" || op_type !== "";
  // If the operator is not in the dump, its record is still among the events.
  const select = () => go(op === null ? { view: "events" } : { op });
  return (
    <div>
      <dt>{t.fact_overflow}</dt>
      <dd>
        <button type="button" onClick={select} title={visible(op_name)}>
          <bdi>{is_named ? last : `${t.task} ${formatCount(first.task)}`}</bdi>
        </button>
      </dd>
    </div>
  );
}
