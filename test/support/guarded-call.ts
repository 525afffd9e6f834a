import type { Call, CallGuard } from '../../src/redis/availability/call-guard.js';

/** A call that the store never answers. */
export const NO_ANSWER = Symbol('no answer');

/** A call whose attempts end with the given outcomes. */
export interface ScriptedCall extends Call<string> {
  /** The number of each attempt. */
  readonly attempts: readonly number[];
}

/**
 * @param outcomes of its attempts, in order: an error, {@link NO_ANSWER} or a reply. Further attempts end
 * like the last.
 */
export function callThat(
  outcomes: readonly (Error | string | typeof NO_ANSWER)[],
  more: Partial<Call<string>> = {},
): ScriptedCall {
  const attempts: number[] = [];
  return {
    script: 'check',
    operation: () => 'FCALL',
    name: 'a:key',
    size: 1,
    isWrite: true,
    isRepeatable: true,
    attempts,
    send: (attempt) => {
      attempts.push(attempt);
      const outcome = outcomes[Math.min(attempts.length, outcomes.length) - 1]!;
      if (outcome instanceof Error) return Promise.reject(outcome);
      if (outcome === NO_ANSWER) return new Promise(() => undefined);
      return Promise.resolve(outcome);
    },
    ...more,
  };
}

/** The error that the call fails with. */
export function failureIn(guard: CallGuard, call: ScriptedCall): Promise<unknown> {
  return guard.run(call).then(
    (reply) => Promise.reject(new Error(`answered: ${reply}`)),
    (error: unknown) => error,
  );
}
