/** Ctrl K: operators first, faulty ones on top, then commands with their keys. */

import { useEffect, useState } from "preact/hooks";
import { go, type View } from "./address";
import type { Operators, Row } from "./api";
import { useAnswer } from "./connection";
import { Dialog } from "./dialog";
import { Glyph, signOf } from "./glyph";
import { Name } from "./name";
import { visible } from "./names";
import { formatCount } from "./numbers";
import type { Page } from "./page";
import { copyLink, selectFault } from "./selection";
import { t } from "./texts";

interface PaletteProps {
  page: Page;
  onClose: () => void;
  onKeys: () => void;
}

interface Command {
  words: string;
  keys: string;
  run: () => void;
}

const OPERATORS_MAX = 8;

export function Palette({ page, onClose, onKeys }: PaletteProps) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [is_waiting, setWaiting] = useState(false);
  const word = text.trim();
  const filter = word ? word.split(/\s+/).map(quoted).join(" ") : "";
  const sort = page.info.golden ? "guilt" : "order";
  const answer = useAnswer<Operators>(
    `operators?q=${encodeURIComponent(filter)}&sort=${sort}&offset=0&limit=${OPERATORS_MAX}`,
    60,
  );
  const rows = answer.data?.rows ?? [];
  const commands = matchingCommands(page, word, onKeys);
  const n = rows.length + commands.length;
  const chosen = Math.min(at, Math.max(0, n - 1));
  const run = (i: number) => {
    if (i < rows.length) openRow(page, rows[i]);
    onClose();
    if (i >= rows.length) commands[i - rows.length]?.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0 && n > 0) setAt((chosen + step + n) % n);
    // While the answer loads, Enter refers to the coming operator rather than a command.
    else if (event.key === "Enter" && answer.loading) setWaiting(true);
    else if (event.key === "Enter" && n > 0) run(chosen);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    if (is_waiting && !answer.loading && n > 0) run(chosen);
  }, [is_waiting, answer.loading]);
  return (
    <Dialog label={t.palette} onClose={onClose}>
      <div class="palette-input">
        <input
          type="text"
          placeholder={t.palette}
          aria-label={t.palette}
          value={text}
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={n > 0 ? `palette-${chosen}` : undefined}
          spellcheck={false}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
            setWaiting(false);
          }}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      <div class="palette-list" id="palette-list" role="listbox" aria-label={t.palette}>
        {rows.map((row, i) => (
          <div
            key={row.id}
            id={`palette-${i}`}
            role="option"
            aria-selected={i === chosen}
            class="option"
            onClick={() => run(i)}
            onMouseMove={() => setAt(i)}
          >
            <Glyph sign={signOf(row)} />
            <Name name={row.op_name} type={row.op_type} width={340} has_type={false} />
            <span class="grow" />
            <span class="dim">
              <bdi>{visible(row.op_type)}</bdi> #{formatCount(row.id)}
            </span>
            {i === chosen && <kbd>Enter</kbd>}
          </div>
        ))}
        {rows.length === 0 && !answer.loading && <p class="empty">{t.palette_none}</p>}
        {commands.length > 0 && <p class="label">{t.commands}</p>}
        {commands.map((command, k) => {
          const i = rows.length + k;
          return (
            <div
              key={command.words}
              id={`palette-${i}`}
              role="option"
              class="option"
              aria-selected={i === chosen}
              onClick={() => run(i)}
              onMouseMove={() => setAt(i)}
            >
              <span>{command.words}</span>
              <span class="grow" />
              {command.keys && <kbd>{command.keys}</kbd>}
            </div>
          );
        })}
      </div>
    </Dialog>
  );
}

function quoted(word: string): string {
  const plain = word.replace(/"/g, "");
  return `name~"${plain}"`;
}

function openRow(page: Page, row: Row): void {
  const stays = page.address.view === "tensor" || page.address.view === "graph";
  go({ op: row.id, view: stays ? page.address.view : "overview" });
}

function matchingCommands(page: Page, word: string, onKeys: () => void): Command[] {
  const commands: Command[] = [
    { words: t.next_fault, keys: "n", run: () => void selectFault(page, 1) },
    { words: t.copy_link, keys: "y", run: () => void copyLink() },
    { words: t.show_keys, keys: "?", run: onKeys },
    ...page.info.views
      .filter((view) => view in t.views)
      .map((view) => ({
        words: t.views[view],
        keys: `g ${view === "overview" ? "o" : view[0]}`,
        run: () => go({ view: view as View }),
      })),
  ];
  const search = word.toLowerCase();
  const found = commands.filter((c) => search === "" || c.words.toLowerCase().includes(search));
  if (search === "") return found;
  const filter = /\s/.test(word) ? quoted(word) : `name~${word.replace(/"/g, "")}`;
  const by_filter: Command = {
    words: t.filter_by(filter),
    keys: "/",
    run: () => go({ view: "overview", q: filter }),
  };
  return [by_filter, ...found];
}
