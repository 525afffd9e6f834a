// A check on the wire, and the text and length of its right answers.
import { randomUUID } from 'node:crypto';

/** `KEY` is replaced by the key's name. */
export const SINGLE_CHECK = {
  path: '/rate/KEY',
  approved: {
    text: '{"request_id":"',
    length: JSON.stringify({ request_id: randomUUID() }).length,
  },
  refused: { text: '{"error":"rate limit exceeded"' },
};

/** A bulk request with this many elements like `body`. */
export function checksAtOnce(checks) {
  const approvals = Array.from({ length: checks }, () => ({
    status: 200,
    request_id: randomUUID(),
  }));
  return {
    path: '/rate',
    body: '{"key":"KEY"}',
    checks,
    approved: {
      text: '[{"status":200,"request_id":"',
      length: JSON.stringify(approvals).length,
    },
  };
}

/** The path and the body of one call. */
export function callOf({ path, body = '', checks = 1 }, nextKey) {
  if (checks === 1) {
    const key = nextKey();
    return { path: path.replace('KEY', key), body: body.replace('KEY', key) };
  }
  const elements = Array.from({ length: checks }, () => body.replace('KEY', nextKey()));
  return { path, body: `[${elements.join(',')}]` };
}

export function isRight(answer, { approved, refused }, mayRefuse) {
  const is = ({ text, length }) =>
    answer.includes(text) && (length === undefined || answer.length === length);
  return is(approved) || (mayRefuse && refused !== undefined && is(refused));
}
