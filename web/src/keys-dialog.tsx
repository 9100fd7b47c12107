/** The keys of the page, as one list. */

import { Dialog } from "./dialog";
import { t } from "./texts";

export function KeysDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog label={t.keys} onClose={onClose}>
      <header class="dialog-head">
        <h2>{t.keys}</h2>
        <button type="button" class="quiet" onClick={onClose} autofocus>
          {t.close} <kbd>Esc</kbd>
        </button>
      </header>
      <dl class="keys">
        {t.key_words.map(([keys, words]) => (
          <div key={keys}>
            <dt>
              {keys.split(" ").map((key) =>
                key === "then" ? (
                  "› "
                ) : (
                  <>
                    <kbd>{key.length > 1 ? key.replace(",", "") : key}</kbd>{" "}
                  </>
                ),
              )}
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
