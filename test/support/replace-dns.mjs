// Preloaded into a replica: host names have the addresses in a file. The look-up of a name gets no answer if the file
// says `hangs`, and fails if the file has the code of an error or nothing for the name.
import dns from 'node:dns';
import { readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { isIP } from 'node:net';
import { promisify } from 'node:util';

const { lookup } = dns;
dns.lookup = (name, ...rest) => {
  // Such as the address that the replica listens on.
  if (isIP(name)) {
    lookup(name, ...rest);
    return;
  }
  const [options, callback] = rest;
  const { [name]: answer = 'ENOTFOUND' } = JSON.parse(readFileSync(process.env.DNS_FILE, 'utf8'));
  if (answer === 'hangs') return;
  process.nextTick(() => {
    if (!isIP(answer)) {
      callback(Object.assign(new Error(`getaddrinfo ${answer} ${name}`), { code: answer }));
    } else if (options.all) {
      callback(null, [{ address: answer, family: isIP(answer) }]);
    } else {
      callback(null, answer, isIP(answer));
    }
  });
};
dns.promises.lookup = promisify(dns.lookup);
syncBuiltinESMExports();
