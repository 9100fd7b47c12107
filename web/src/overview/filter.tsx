/** The filter box. It marks a wrong token in place, and the last valid filter stays in force. */

import { useEffect, useRef, useState } from "preact/hooks";
import { currentAddress, go, scopedFilter } from "../address";
import type { FilterError } from "../api";
import { filled, t } from "../texts";
import { formatCount } from "../numbers";
import { useKeys } from "../keys";
import type { Page } from "../page";
import { rowSource, type RowSource } from "../rows";
import { useMedia } from "../media";
import { visible } from "../names";
import { ColumnChoice, OrderChoice } from "./choices";
import { completed, completionAt, type Completion } from "./completion";

interface FilterProps {
  page: Page;
  /** The rows on display: those of the last valid filter. */
  source: RowSource;
  wrong: FilterError | null;
}

const PAUSE_MS = 160;
const MISTAKE_PAUSE_MS = 500;

export function FilterBox({ page, source, wrong }: FilterProps) {
  const { address } = page;
  const [draft, setDraft] = useState(address.q);
  const [draft_error, setDraftError] = useState<FilterError | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const is_narrow = useMedia("(max-width: 759px)");
  const error = draft_error ?? (draft.trimEnd() === address.q ? wrong : null);
  useEffect(() => {
    // A trailing blank belongs to the text being typed, not to the filter.
    setDraft((typed) => (typed.trimEnd() === address.q ? typed : address.q));
    setDraftError(null);
  }, [address.q]);
  const clear = () => {
    setDraft("");
    setDraftError(null);
    go({ q: "" });
  };
  useKeys((key) => {
    if (key === "/") input.current?.focus();
    if (key === "Escape" && (address.q !== "" || draft !== "")) clear();
    else if (key !== "/") return false;
    return true;
  });
  const repair = (word: string) => {
    if (!error) return;
    const [start, end] = [unitsAt(draft, error.start), unitsAt(draft, error.end)];
    setDraft(draft.slice(0, start) + word + draft.slice(end));
    input.current?.focus();
  };
  return (
    <div class="filter">
      <div class="filter-line">
        <FilterInput
          page={page}
          draft={draft}
          error={error}
          input={input}
          onDraft={setDraft}
          onError={setDraftError}
          onClear={clear}
        />
        <Matching source={source} />
        {is_narrow ? <OrderChoice page={page} /> : <ColumnChoice page={page} />}
      </div>
      {error && <Mistake error={error} source={source} onRepair={repair} />}
    </div>
  );
}

/** The server counts characters, whereas browser text consists of 16-bit units. */
function unitsAt(text: string, characters: number): number {
  return Array.from(text).slice(0, characters).join("").length;
}

interface MistakeProps {
  error: FilterError;
  source: RowSource;
  onRepair: (word: string) => void;
}

function Mistake({ error, source, onRepair }: MistakeProps) {
  const { message, suggestion } = error;
  const words = message.charAt(0).toUpperCase() + message.slice(1).replace(/\.$/, "");
  return (
    <p class="filter-error" id="filter-error" role="alert">
      {words
        .split("`")
        .map((part, i) => (i % 2 === 1 ? <code key={i}>{visible(part)}</code> : part))}
      {". "}
      {suggestion &&
        filled(t.did_you_mean, {
          word: (
            <button type="button" class="link" onClick={() => onRepair(suggestion)}>
              {visible(suggestion)}
            </button>
          ),
        })}
      <span class="last-good">{t.last_good(source.filter, source.matching ?? 0)}</span>
    </p>
  );
}

interface FilterInputProps {
  page: Page;
  draft: string;
  error: FilterError | null;
  input: { current: HTMLInputElement | null };
  onDraft: (draft: string) => void;
  onError: (error: FilterError | null) => void;
  onClear: () => void;
}

function FilterInput(props: FilterInputProps) {
  const { page, draft, error, input, onDraft, onClear } = props;
  const has_added = useRef(false);
  const [caret, setCaret] = useState<number | null>(null);
  const [at, setAt] = useState(-1);
  const is_narrow = useMedia("(max-width: 759px)");
  const is_pair = page.info.golden !== null;
  useDraft(draft, has_added, props.onError);
  const completion = caret === null ? null : completionAt(draft, caret, is_pair);
  const accept = (word: string) => {
    if (!completion) return;
    const next = completed(draft, completion, word);
    onDraft(next);
    setCaret(word.endsWith(":") ? next.length : null);
    setAt(-1);
    input.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const n = completion?.words.length ?? 0;
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Escape") {
      event.stopPropagation();
      if (completion) setCaret(null);
      else if (draft === "") input.current?.blur();
      else onClear();
    } else if (n > 0 && step !== 0) setAt((at + step + n) % n);
    else if (completion && at >= 0 && event.key === "Enter") accept(completion.words[at]);
    else if (event.key === "Enter" || event.key === "ArrowDown") focusTable();
    else return;
    event.preventDefault();
  };
  const placeholder = is_narrow ? t.filter : is_pair ? t.filter_two : t.filter_one;
  return (
    <span class="completing">
      <span class={`field ${error ? "is-wrong" : ""}`}>
        <Tokens text={draft} error={error} input={input} />
        <input
          ref={input}
          type="text"
          value={draft}
          spellcheck={false}
          autocomplete="off"
          role="combobox"
          aria-expanded={completion !== null}
          aria-controls="filter-words"
          aria-activedescendant={completion && at >= 0 ? `filter-word-${at}` : undefined}
          aria-label={t.filter}
          aria-invalid={error !== null}
          aria-describedby={error ? "filter-error" : undefined}
          placeholder={placeholder}
          onInput={(event) => {
            onDraft(event.currentTarget.value);
            setCaret(event.currentTarget.selectionStart);
            setAt(-1);
          }}
          onFocus={() => {
            has_added.current = false;
          }}
          onBlur={() => setCaret(null)}
          onKeyDown={onKeyDown}
        />
        <kbd aria-hidden="true">/</kbd>
      </span>
      {completion && <Words completion={completion} at={at} onAccept={accept} />}
    </span>
  );
}

interface WordsProps {
  completion: Completion;
  at: number;
  onAccept: (word: string) => void;
}

function Words({ completion, at, onAccept }: WordsProps) {
  return (
    <span class="words" id="filter-words" role="listbox" aria-label={t.filter}>
      {completion.words.map((word, i) => (
        <span
          key={word}
          id={`filter-word-${i}`}
          role="option"
          aria-selected={i === at}
          class="option"
          onPointerDown={(event) => {
            // The input keeps the focus; losing it would close the list.
            event.preventDefault();
            onAccept(word);
          }}
        >
          {word}
        </span>
      ))}
    </span>
  );
}

function focusTable(): void {
  document.querySelector<HTMLElement>(".rows > .row[tabindex='0']")?.focus();
}

/** Tries a draft when typing pauses; only a filter that the server accepts comes into force. */
function useDraft(
  draft: string,
  has_added: { current: boolean },
  setError: (error: FilterError | null) => void,
): void {
  useEffect(() => {
    if (draft.trimEnd() === currentAddress().q) {
      setError(null);
      return;
    }
    let wanted = true;
    let timer = setTimeout(async () => {
      const address = currentAddress();
      const source = rowSource(scopedFilter(address, draft.trimEnd()), address.sort);
      await source.load(0);
      if (!wanted || source.failure !== null) return;
      if (source.error) {
        // An unfinished condition is not a mistake yet.
        timer = setTimeout(() => wanted && setError(source.error), MISTAKE_PAUSE_MS);
        return;
      }
      setError(null);
      go({ q: draft.trimEnd() }, { adds: !has_added.current });
      has_added.current = true;
    }, PAUSE_MS);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [draft]);
}

interface TokensProps {
  text: string;
  error: FilterError | null;
  input: { current: HTMLInputElement | null };
}

/** Painted below the transparent input: tokens as chips, and a wave under a wrong one. */
function Tokens({ text, error, input }: TokensProps) {
  const [shift, setShift] = useState(0);
  useEffect(() => {
    const element = input.current!;
    const follow = () => setShift(element.scrollLeft);
    element.addEventListener("scroll", follow);
    return () => element.removeEventListener("scroll", follow);
  }, []);
  let at = 0;
  const pieces = text.split(/((?:"[^"]*"?|\S)+)/).map((piece) => {
    const start = at;
    at += piece.length;
    if (piece.trim() === "") return piece;
    const is_wrong = error !== null && start < error.end && at > error.start;
    const is_chip = !is_wrong && at < text.length && /[:~<>=]/.test(piece);
    return <span class={is_wrong ? "wrong" : is_chip ? "token" : ""}>{piece}</span>;
  });
  return (
    <span class="tokens" aria-hidden="true">
      <span style={{ transform: `translateX(${-shift}px)` }}>{pieces}</span>
    </span>
  );
}

function Matching({ source }: { source: RowSource }) {
  const { matching, total } = source;
  if (matching === null) return <span class="matching">…</span>;
  const words = matching === total ? formatCount(total) : t.matching(matching, total);
  return (
    <span class="matching" aria-live="polite">
      {words}
    </span>
  );
}
