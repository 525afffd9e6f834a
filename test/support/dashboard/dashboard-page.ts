import type { OutgoingHttpHeaders } from 'node:http';

import type { KeyRow } from '../../../src/http/routes/ui/key-rows.js';
import type { DescribedReplica, Knowledge } from '../../../src/http/routes/ui/overview.js';
import type { KeyState, Survey } from '../../../src/http/routes/ui/key-survey.js';
import type { FleetView } from '../../../src/service/fleet/fleet.js';
import { send } from '../http-client.js';

/** The body of `GET /ui/data`. */
export interface Overview extends DescribedReplica, Knowledge {
  readonly storeState: 'up' | 'partly down' | 'down';
  readonly total: Partial<NonNullable<FleetView['total']>> & { readonly waiting: number };
  readonly replicas: FleetView['replicas'];
  readonly survey: Omit<Survey, 'states'> & { readonly kept: number };
  readonly counts: Readonly<Record<KeyState, number>>;
  readonly matching: number;
  readonly keys: readonly KeyRow[];
  readonly intervalMillis: number;
}

export async function overviewOf(
  url: string,
  query: Readonly<Record<string, string>> = {},
  headers: OutgoingHttpHeaders = {},
): Promise<Overview> {
  const path = `/ui/data?${new URLSearchParams(query).toString()}`;
  const answer = await send(url, 'GET', path, headers);
  if (answer.status !== 200) throw new Error(`no overview: ${answer.status} ${answer.text}`);
  return answer.json() as Overview;
}

export function keysOf(rows: readonly KeyRow[]): string[] {
  return rows.map(({ key }) => key);
}

/** The path of one key's detail, or of another request of the page about it. */
export function keyPath(path: string, key: string, more: Record<string, string> = {}): string {
  return `${path}?${new URLSearchParams({ key, ...more }).toString()}`;
}

/** What the replica that answers has decided since its start. */
export function decisionsOf({
  replicas: [own],
}: Overview): Overview['replicas'][number]['decisions'] {
  return own!.decisions;
}
