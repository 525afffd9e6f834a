import { status } from '@grpc/grpc-js';

import { GRPC_STATUSES } from '../../../src/grpc/error-statuses.js';
import { httpStatusOf } from '../../../src/http/replies/error-statuses.js';
import {
  ListingForbiddenError,
  StoreFullError,
  StoreUnavailableError,
  UnavailableError,
} from '../../../src/limiter/errors.js';
import { toLimiterError } from '../../../src/redis/availability/store-errors.js';
import { serviceErrorFor, STORE_FAILURES } from '../../../src/service/store-failures.js';
import { listItems } from '../../support/docs/lists.js';
import { readPage } from '../../support/docs/pages.js';

type Kind = keyof typeof STORE_FAILURES;

/** Errors of each kind, as limiters throw them. */
const THROWN: Readonly<Record<Kind, Error>> = {
  store_unavailable: new StoreUnavailableError(),
  store_full: new StoreFullError(),
  key_full: new UnavailableError('key_full'),
  too_many_waiters: new UnavailableError('too_many_waiters'),
  shutting_down: new UnavailableError('shutting_down'),
  handed_over: new UnavailableError('handed_over'),
  listing_forbidden: new ListingForbiddenError({}),
  fault: new Error('a fault'),
};

const PAGE = 'docs/reliability.md';
const failures = Object.values(STORE_FAILURES);

test('the list of failures in docs/reliability.md equals the failures of the service, one by one', () => {
  expect(listItems(PAGE, '## What callers get')).toEqual(
    failures.map(({ when, code }) => `**${httpStatusOf(code)} \`${code}\`**: ${when}`),
  );
});

test('docs/reliability.md says how failures are called in the metrics and over gRPC', () => {
  const labels = failures.map(({ metric }) => metric);
  const codes = failures.map(({ code }) => code.toLowerCase());
  expect(labels).toEqual([...codes.slice(0, -2), undefined, undefined]);
  const page = readPage(PAGE).replaceAll(/\s+/g, ' ');
  for (const { code } of failures) {
    const [http, grpc] = [httpStatusOf(code), status[GRPC_STATUSES[code]]];
    expect(page).toMatch(new RegExp(`\\ban? ${http} (?:is )?\`${grpc}\``));
  }
});

test.each(Object.entries(THROWN) as [Kind, Error][])(
  'an error of the kind %s has the class and the code of its row',
  (kind, error) => {
    expect(error).toBeInstanceOf(STORE_FAILURES[kind].thrown);
    expect(serviceErrorFor(error).code).toBe(STORE_FAILURES[kind].code);
  },
);

test.each(Object.entries(STORE_FAILURES))(
  "Redis's replies in the row %s give its code",
  (_, row) => {
    const replies = row.when.match(/(?<=`)[A-Z]+(?=`)/g) ?? [];
    for (const reply of replies) {
      const error = Object.assign(new Error(`${reply} of Redis`), { name: 'ReplyError' });
      expect([reply, serviceErrorFor(toLimiterError(error)).code]).toEqual([reply, row.code]);
    }
  },
);
