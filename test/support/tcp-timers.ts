import { readFile } from 'node:fs/promises';

const ESTABLISHED = '01';
const TICKS_PER_SECOND = 100;

/** In this kernel's table a socket with nothing to send and this timer waits to ask its peer for a sign of life. */
export const KEEP_ALIVE_TIMER = '02';

/** A socket with this timer waits for the acknowledgement of what it has sent. */
export const RETRANSMISSION_TIMER = '01';

/** The timer of a connection, and the seconds left. */
export interface TcpTimer {
  readonly kind: string;
  readonly seconds: number;
}

/**
 * The timers of the connections to a port of this machine.
 * @param side whose timers: of the sockets that the port has accepted, or of their clients
 */
export async function timersOf(url: string, side: 'server' | 'client'): Promise<TcpTimer[]> {
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, '0');
  const table = await readFile('/proc/net/tcp', 'utf8');
  return table
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, remote, state]) => {
      const address = side === 'server' ? local : remote;
      return address?.endsWith(`:${port}`) && state === ESTABLISHED;
    })
    .map(([, , , , , timer = '']) => {
      const [kind = '', ticks = ''] = timer.split(':');
      return { kind, seconds: Number.parseInt(ticks, 16) / TICKS_PER_SECOND };
    });
}
