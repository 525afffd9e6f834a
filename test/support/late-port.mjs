// Loaded into a replica, by `--import`: the port LATE_PORT begins to listen when the file LISTENS_WITH is there.
import { existsSync } from 'node:fs';
import { Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const { LATE_PORT, LISTENS_WITH } = process.env;
const { listen } = Server.prototype;

Server.prototype.listen = function listenLate(port, ...rest) {
  if (String(port) !== LATE_PORT) return listen.call(this, port, ...rest);
  const begin = async () => {
    while (!existsSync(LISTENS_WITH)) await delay(10);
    listen.call(this, port, ...rest);
  };
  void begin();
  return this;
};
