/** The fields of a key's state as they mean it, whichever of them are stored: docs/redis.md. */
export interface StoredState {
  readonly start: number;
  readonly window: number;
  readonly max: number;
  readonly queue_max: number;
  /** The maxima that requests have set. */
  readonly overridden: '' | 'max' | 'queue_max' | 'max,queue_max';
  readonly approved: number;
  readonly denied: number;
  readonly turn: number;
  readonly born: number;
  readonly expires: number;
  /** 0 where none was given out. */
  readonly ticket: number;
  readonly hold_until: number;
  readonly unsorted: number;
  readonly serving: number;
  readonly served: number;
}

const WINDOWS_KEPT = 4;

/** @param fields of HGETALL; undefined where there are none */
export function readStoredState(fields: Readonly<Record<string, string>>): StoredState | undefined {
  const { limits = '' } = fields;
  const [, window, max, maxMark, queueMax, queueMark] =
    /^(\d+):(\d+)(\*?):(\d+)(\*?)$/.exec(limits) ?? [];
  if (window === undefined) return undefined;
  const number = (name: string): number => Number(fields[name] ?? 0);
  const start = number('start');
  return {
    start,
    window: Number(window),
    max: Number(max),
    queue_max: Number(queueMax),
    overridden: [maxMark && 'max', queueMark && 'queue_max']
      .filter(Boolean)
      .join(',') as StoredState['overridden'],
    approved: number('approved'),
    denied: number('denied'),
    turn: number('turn'),
    born: number('born'),
    expires: number('expires') || start + WINDOWS_KEPT * Number(window),
    ticket: number('ticket'),
    hold_until: number('hold_until'),
    unsorted: number('unsorted'),
    serving: number('serving'),
    served: number('served'),
  };
}
