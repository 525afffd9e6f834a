const HIDDEN = '[Redacted]';

const WORD = /[^\s"]+/g;

/**
 * A URL as the log shows it: the path, and the query parameters that Sluice reads. Other parameters may be secrets,
 * such as `?access_token=...`, and so may their names.
 */
export function loggedUrl(url: string, parameters: ReadonlySet<string>): string {
  const end = url.search(/[?#]/);
  if (end === -1) return url;
  const parts = url.slice(end + 1).split(/[&#]/);
  const shown = parts.map((part) => {
    const name = part.split('=', 1)[0] ?? '';
    return part === '' || (parameters.has(name) && part !== name) ? part : HIDDEN;
  });
  return `${url.slice(0, end)}?${shown.join('&')}`;
}

/** The value of a header such as `Referer`, without the queries and fragments of its URLs. */
export function withoutUrlTails(value: string): string {
  return value.replace(WORD, (word) => {
    const path = word.split(/[?#]/, 1)[0] ?? '';
    return path.includes('/') && path !== word ? `${path}?${HIDDEN}` : word;
  });
}
