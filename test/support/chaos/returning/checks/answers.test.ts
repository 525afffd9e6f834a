import type { FaultRecord } from '../../faults/fault.js';
import type { Visit } from '../visits.js';
import { wrongAnswers } from './answers.js';
import {
  confirmed,
  ended,
  evidenceOf,
  fault,
  granted,
  owned,
  run,
  visit,
} from './sample-evidence.js';

const wrong = (
  fields: Partial<Visit>,
  others: readonly Visit[] = [],
  faults: readonly FaultRecord[] = [],
  runs = [run(500, granted('a', 1500)), run(501, confirmed('a'))],
): string[] => {
  const answered = visit('a', { outcome: 'answered', ...fields });
  return wrongAnswers(evidenceOf({ runs, visits: [answered, ...others], faults }));
};

test('an approval that a script has confirmed is right', () => {
  expect(wrong({ status: 200 })).toEqual([]);
});

test('an approval that is still to be confirmed is wrong', () => {
  expect(wrong({ status: 200 }, [], [], [run(500, granted('a', 1500))])).toHaveLength(1);
});

test('a place is an answer to those that prefer not to wait for their turn', () => {
  const body = JSON.stringify({ request_id: 'a', position: 1, waitMillis: 0 });
  expect(wrong({ status: 202, body, preferSeconds: 1 })).toEqual([]);
  expect(wrong({ status: 202, body })).toHaveLength(1);
  const nowhere = JSON.stringify({ request_id: 'a', position: 0, waitMillis: 0 });
  expect(wrong({ status: 202, body: nowhere, preferSeconds: 1 })).toHaveLength(1);
  const other = JSON.stringify({ request_id: 'b', position: 1, waitMillis: 0 });
  expect(wrong({ status: 202, body: other, preferSeconds: 1 })).toHaveLength(1);
});

test('one that prefers a short wait is answered after it', () => {
  const body = JSON.stringify({ request_id: 'a', position: 1, waitMillis: 0 });
  const after = (endedAt: number) => wrong({ status: 202, body, preferSeconds: 1, endedAt });
  expect(after(2500)).toEqual([]);
  expect(after(2501)).toHaveLength(1);
});

test('a conflict is right if another check had the place, or the approval was released', () => {
  const body = 'a later check with this requestId has taken over';
  expect(wrong({ status: 409, body })).toHaveLength(1);
  expect(wrong({ status: 409, body }, [visit('a', { sentAt: 800 })])).toEqual([]);
  expect(wrong({ status: 409, body }, [visit('a', { sentAt: 1001 })])).toHaveLength(1);
  const overtaken = [run(500, owned('a')), run(600, owned('a'))];
  expect(wrong({ status: 409, body }, [], [], overtaken)).toEqual([]);
  const used = 'the approval with this requestId was released, or has lapsed';
  expect(wrong({ status: 409, body: used })).toHaveLength(1);
  expect(wrong({ status: 409, body: used }, [], [], [run(500, ended('a'))])).toEqual([]);
});

test('a 503 and a broken connection are right while a replica fails', () => {
  const failed = [fault({ isolates: [0], beganAt: 500 })];
  const unavailable = { status: 503, body: '', retryAfter: '1' };
  expect(wrong(unavailable)).toHaveLength(1);
  expect(wrong(unavailable, [], failed)).toEqual([]);
  expect(wrong({ outcome: 'cut' })).toHaveLength(1);
  expect(wrong({ outcome: 'cut' }, [], failed)).toEqual([]);
});

test('what else comes is wrong', () => {
  expect(wrong({ status: 400 })).toHaveLength(1);
  expect(wrong({ status: 429 })).toHaveLength(1);
  expect(wrong({ outcome: 'pending', endedAt: undefined })).toHaveLength(1);
});
