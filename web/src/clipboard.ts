/**
 * Copies text. Pages from another machine are not secure contexts, so they cannot write to the
 * clipboard.
 */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.style.position = "fixed";
  field.style.opacity = "0";
  document.body.append(field);
  field.select();
  const is_copied = document.execCommand("copy");
  field.remove();
  return is_copied;
}
