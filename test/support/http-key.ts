import { type DebugState, debugState, untilWaiting } from './debug-state.js';
import { type Answer, approve, begin, type PendingRequest, ratePath, send } from './http-client.js';
import { uniqueKey } from './unique-key.js';

type Headers = Readonly<Record<string, string>>;

/** A key of a service, and what tests do with it. Each test has another. */
export interface HttpKey {
  readonly name: string;
  check(query?: string, headers?: Headers): Promise<Answer>;
  /** Sends a check that must be approved. Returns its request id. */
  approve(query?: string): Promise<string>;
  /** Sends a check, and returns when the queue has it. */
  wait(query?: string, headers?: Headers): Promise<PendingRequest>;
  release(requestId: string): Promise<Answer>;
  amend(requestId: string, query?: string): Promise<Answer>;
  pause(query: string): Promise<Answer>;
  state(): Promise<DebugState>;
}

/** @param app the service, which may start later */
export function useHttpKey(app: () => { readonly url: string }): HttpKey {
  let name: string;
  beforeEach(() => {
    name = uniqueKey();
  });
  const path = (requestId?: string): string =>
    requestId === undefined ? ratePath(name) : `${ratePath(name)}/${encodeURIComponent(requestId)}`;
  const state = (): Promise<DebugState> => debugState(app().url, name);
  return {
    get name() {
      return name;
    },
    check: (query = '', headers = {}) => send(app().url, 'POST', path() + query, headers),
    approve: (query) => approve(app().url, name, query),
    wait: async (query = '?canWait=true', headers = {}) => {
      const { NumWaiting = 0 } = await state();
      const pending = begin(app().url, 'POST', path() + query, headers);
      await untilWaiting(app().url, name, NumWaiting + 1);
      return pending;
    },
    release: (requestId) => send(app().url, 'DELETE', path(requestId)),
    amend: (requestId, query = '') => send(app().url, 'PUT', path(requestId) + query),
    pause: (query) => send(app().url, 'PUT', path() + query),
    state,
  };
}
