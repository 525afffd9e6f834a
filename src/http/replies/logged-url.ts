const HIDDEN = '[Redacted]';

const WORD = /[^\s"]+/g;

/** A request id is a secret: with it, anyone may take the place or the approval. It has 36 characters, and more if any are encoded. */
const REQUEST_ID_IN_PATH = /^(\/rate\/[^/]+\/)[^/]{36,}/;
const REQUEST_ID_IN_QUERY = 'requestId';

/**
 * A URL as the log shows it: the path, and the query parameters that Sluice reads, without request ids. Other parameters
 * may be secrets, such as `?access_token=...`, and so may their names.
 */
export function loggedUrl(url: string, parameters: ReadonlySet<string>): string {
  const end = url.search(/[?#]/);
  const path = end === -1 ? url : url.slice(0, end);
  const shownPath = path.replace(REQUEST_ID_IN_PATH, `$1${HIDDEN}`);
  if (end === -1) return shownPath;
  const parts = url.slice(end + 1).split(/[&#]/);
  const shown = parts.map((part) => {
    const name = part.split('=', 1)[0] ?? '';
    if (part === '') return part;
    if (!parameters.has(name) || part === name) return HIDDEN;
    return name === REQUEST_ID_IN_QUERY ? `${name}=${HIDDEN}` : part;
  });
  return `${shownPath}?${shown.join('&')}`;
}

/** The value of a header such as `Referer`, without the queries and fragments of its URLs. */
export function withoutUrlTails(value: string): string {
  return value.replace(WORD, (word) => {
    const path = word.split(/[?#]/, 1)[0] ?? '';
    return path.includes('/') && path !== word ? `${path}?${HIDDEN}` : word;
  });
}
