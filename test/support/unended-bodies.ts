import { JSON_HEADERS } from './bulk-client.js';
import { openConnection, type RawConnection, requestText } from './raw-http.js';

export interface Unended {
  readonly connections: number;
  /** The announced length of each body, and how many bytes are sent. */
  readonly length: number;
  readonly sent: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The address of the client. */
  readonly from?: string;
}

/** Sends bulk requests whose bodies do not end, one on each connection. Resolves when the service has read their heads. */
export async function sendUnended(url: string, unended: Unended): Promise<RawConnection[]> {
  const { connections, length, sent, headers, from } = unended;
  const all = {
    ...JSON_HEADERS,
    ...headers,
    'Content-Length': String(length),
    Expect: '100-continue',
  };
  const begin = async (): Promise<RawConnection> => {
    const connection = await openConnection(url, from);
    connection.write(requestText('POST', '/rate', all));
    await connection.receives(/100 Continue/);
    connection.write(' '.repeat(sent));
    return connection;
  };
  return Promise.all(Array.from({ length: connections }, begin));
}
