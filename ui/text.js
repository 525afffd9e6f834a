// Numbers and times as texts.

const WHOLE = new Intl.NumberFormat('en');
const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const SMALL = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 });

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A count in a few characters: 940, 12,345, 1.2M. */
export function count(number) {
  return number < 100_000 ? WHOLE.format(number) : SHORT.format(number);
}

/** A rate: 0.25, 7.3, 940. */
export function rate(perSecond) {
  return perSecond < 10 ? SMALL.format(perSecond) : count(Math.round(perSecond));
}

/** A length of time in one or two units: 250 ms, 4.2 s, 3 min 20 s. */
export function duration(millis) {
  if (millis < SECOND) return `${Math.round(millis)} ms`;
  if (millis < 10 * SECOND) return `${Number((millis / SECOND).toFixed(1))} s`;
  if (millis < MINUTE) return `${Math.floor(millis / SECOND)} s`;
  if (millis < HOUR) return units(millis, MINUTE, 'min', SECOND, 's');
  if (millis < DAY) return units(millis, HOUR, 'h', MINUTE, 'min');
  return units(millis, DAY, 'd', HOUR, 'h');
}

function units(millis, large, largeName, small, smallName) {
  const rest = Math.floor((millis % large) / small);
  const main = `${Math.floor(millis / large)} ${largeName}`;
  return rest === 0 ? main : `${main} ${rest} ${smallName}`;
}

/** How long ago something was. */
export function ago(millis) {
  return millis < SECOND ? 'just now' : `${duration(millis)} ago`;
}

/** When something was, by the browser's clock, with the day if it was not today. */
export function moment(millisAgo) {
  const at = new Date(Date.now() - millisAgo);
  const isToday = at.toDateString() === new Date().toDateString();
  const time = at.toLocaleTimeString();
  return isToday ? time : `${at.toLocaleDateString()} ${time}`;
}

/** Since when something is, and for how long in its largest unit. */
export function sinceText(millis) {
  return `since ${momentAndLength(millis)}`;
}

/** When something began, and how long ago that is in its largest unit. */
export function momentAndLength(millis) {
  return `${moment(millis)} (${roughly(millis)})`;
}

/** A length of time in its largest unit. */
export function roughly(millis) {
  return duration(millis).split(' ').slice(0, 2).join(' ');
}

const REASONS = {
  limit_reached: 'limit reached',
  queue_full: 'queue full',
  queue_full_of_group: 'places of the group taken',
  turn_too_late: 'turn too late',
  wait_expired: 'waited too long',
  too_many_hits: 'more hits than the maximum',
  paused: 'paused',
};

/** Why a key is denied. */
export function reason({ lastReason, lastLimit, byReason, isShadow }) {
  const [other] = Object.keys(REASONS).filter((one) => one !== lastReason && byReason[one] > 0);
  const last = lastLimit ? `${REASONS[lastReason]} (${lastLimit})` : REASONS[lastReason];
  const both = other ? `${last}, ${REASONS[other]}` : last;
  return isShadow ? `${both}; passes: shadow mode` : both;
}

export function plural(number, one, many) {
  return `${count(number)} ${number === 1 ? one : many}`;
}
