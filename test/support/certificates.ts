import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { generate } from 'selfsigned';

/** A certificate and its key as PEM, in files and as text. */
export interface IssuedCertificate {
  readonly cert: string;
  readonly key: string;
  readonly certFile: string;
  readonly keyFile: string;
}

/** A certificate authority for one test file. `remove` removes its files. */
export interface Authority {
  /** The folder of all its files. */
  readonly folder: string;
  /** Its own certificate as PEM, for clients that trust it. */
  readonly ca: string;
  readonly caFile: string;
  /** For `localhost`, 127.0.0.1 and ::1. */
  issueServerCertificate(): Promise<IssuedCertificate>;
  issueClientCertificate(commonName: string): Promise<IssuedCertificate>;
  remove(): Promise<void>;
}

type Extensions = NonNullable<NonNullable<Parameters<typeof generate>[1]>['extensions']>;

/** Elliptic curves, since RSA keys take long to make. */
const ALGORITHM = { keyType: 'ec', curve: 'P-256', algorithm: 'sha256' } as const;

const OF_AUTHORITY: Extensions = [
  { name: 'basicConstraints', cA: true, critical: true },
  { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
];
const OF_SERVER: Extensions = [
  { name: 'basicConstraints', cA: false, critical: true },
  { name: 'keyUsage', digitalSignature: true, critical: true },
  // A Redis also shows its certificate as a client of other Redis servers.
  { name: 'extKeyUsage', serverAuth: true, clientAuth: true },
  {
    name: 'subjectAltName',
    altNames: [
      { type: 2, value: 'localhost' },
      { type: 7, ip: '127.0.0.1' },
      { type: 7, ip: '::1' },
    ],
  },
];
const OF_CLIENT: Extensions = [
  { name: 'basicConstraints', cA: false, critical: true },
  { name: 'keyUsage', digitalSignature: true, critical: true },
  { name: 'extKeyUsage', clientAuth: true },
];

/**
 * Makes an authority, and a temporary folder for its certificates.
 * @param name in its certificates: two authorities that are trusted together need different names
 */
export async function createAuthority(name = 'Sluice test authority'): Promise<Authority> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-certificates-'));
  const authority = await generate([{ name: 'commonName', value: name }], {
    ...ALGORITHM,
    extensions: OF_AUTHORITY,
  });
  const ca = `${authority.cert}\n`;
  const caFile = join(folder, 'ca.crt');
  await writeFile(caFile, ca);

  let issued = 0;
  const issue = async (commonName: string, extensions: Extensions): Promise<IssuedCertificate> => {
    issued += 1;
    const pems = await generate([{ name: 'commonName', value: commonName }], {
      ...ALGORITHM,
      extensions,
      ca: { cert: authority.cert, key: authority.private },
    });
    const cert = `${pems.cert}\n`;
    const key = pems.private;
    const certFile = join(folder, `${issued}.crt`);
    const keyFile = join(folder, `${issued}.key`);
    await Promise.all([writeFile(certFile, cert), writeFile(keyFile, key, { mode: 0o600 })]);
    return { cert, key, certFile, keyFile };
  };
  return {
    folder,
    ca,
    caFile,
    issueServerCertificate: () => issue('localhost', OF_SERVER),
    issueClientCertificate: (commonName) => issue(commonName, OF_CLIENT),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
