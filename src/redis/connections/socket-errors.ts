// Lets the sockets of ioredis 6 fail more than once. It listens for the first error of each only. A socket that is
// ended during its TLS handshake has a second one, which would end the process without a listener. Of its clients
// some are its own (of sentinels, of a cluster), so that no option and no event reaches all.
import { SentinelConnector } from 'ioredis';
import { StandaloneConnector } from 'ioredis/built/connectors/index.js';

const ignore = (): void => undefined;

for (const connector of [StandaloneConnector, SentinelConnector]) letFailTwice(connector.prototype);

function letFailTwice(connector: StandaloneConnector | SentinelConnector): void {
  const connect = Object.getOwnPropertyDescriptor(connector, 'connect')
    ?.value as typeof connector.connect;
  connector.connect = async function (this: typeof connector, onEvent) {
    const socket = await connect.call(this, onEvent);
    socket.on('error', ignore);
    return socket;
  };
}
