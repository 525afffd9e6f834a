import { parseTraceparent } from '../../../src/tracing/traceparent.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const parent = { traceId: TRACE, spanId: SPAN };

test.each([
  ['01', true],
  ['00', false],
  ['03', true],
  ['02', false],
  ['ff', true],
])('the flags %s: sampled is %s', (flags, isSampled) => {
  expect(parseTraceparent(`00-${TRACE}-${SPAN}-${flags}`)).toEqual({ ...parent, isSampled });
});

test.each([`cc-${TRACE}-${SPAN}-01`, `01-${TRACE}-${SPAN}-01-what-the-future-will-be`])(
  'the known part of a later version is read: %s',
  (header) => {
    expect(parseTraceparent(header)).toEqual({ ...parent, isSampled: true });
  },
);

test.each([
  ['none', undefined],
  ['an empty one', ''],
  ['two', `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`],
  ['a list of two', [`00-${TRACE}-${SPAN}-01`, `00-${TRACE}-${SPAN}-01`]],
  ['the version ff', `ff-${TRACE}-${SPAN}-01`],
  ['more after version 00', `00-${TRACE}-${SPAN}-01-more`],
  ['a later version with more after no dash', `01-${TRACE}-${SPAN}-01.more`],
  ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['capitals', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ['a trace that is short', `00-${TRACE.slice(1)}-${SPAN}-01`],
  ['a span that is long', `00-${TRACE}-${SPAN}0-01`],
  ['no flags', `00-${TRACE}-${SPAN}`],
  ['flags of one digit', `00-${TRACE}-${SPAN}-1`],
  ['an invalid digit', `00-${TRACE}-${SPAN}-0g`],
])('is ignored: %s', (_case, header) => {
  expect(parseTraceparent(header)).toBeUndefined();
});
