/**
 * A path into a value as JavaScript writes it, such as `keys[2].window_millis`.
 * @param path of an issue of zod, for example; '' for the value itself
 */
export function pathText(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`));
  return text.join('').replace(/^\./, '');
}
