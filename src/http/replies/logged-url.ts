const HIDDEN = '[Redacted]';

const WORD = /[^\s"]+/g;

/** Where a key stands in a path or in a URL. Whatever it is, it is shown: the log has it as `key` as well. */
const UP_TO_KEY = /^(?:https?:\/\/[^/]*)?\/(?:rate|debug)\/[^/]+/;
/**
 * A request id is a secret: with it, anyone may take the place or the approval. Any other part of a path that is long
 * enough may be one, wherever a mistaken path has it. It has 36 characters, 32 without hyphens, more if any are encoded.
 */
const MAYBE_REQUEST_ID = /[^/]{32,}/g;
const REQUEST_ID_IN_QUERY = 'requestId';

/**
 * A URL as the log shows it: the path, and the query parameters that Sluice reads, without request ids. Other parameters
 * may be secrets, such as `?access_token=...`, and so may their names.
 */
export function loggedUrl(url: string, parameters: ReadonlySet<string>): string {
  const end = url.search(/[?#]/);
  const path = end === -1 ? url : url.slice(0, end);
  const shownPath = withoutRequestIds(path);
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

/** The value of a header such as `Referer`, without the request ids, queries and fragments of its URLs. */
export function withoutUrlSecrets(value: string): string {
  return value.replace(WORD, (word) => {
    const path = word.split(/[?#]/, 1)[0] ?? '';
    if (!path.includes('/')) return word;
    const shownPath = withoutRequestIds(path);
    return path === word ? shownPath : `${shownPath}?${HIDDEN}`;
  });
}

function withoutRequestIds(path: string): string {
  const shownLength = UP_TO_KEY.exec(path)?.[0].length ?? 0;
  return path.slice(0, shownLength) + path.slice(shownLength).replace(MAYBE_REQUEST_ID, HIDDEN);
}
