/** What a browser sends for a link on another site's page, and a preference that a client may add. */
export const OF_BROWSER = {
  Host: 'api.example',
  Origin: 'https://other.example',
  Referer: 'https://other.example/page',
  'Sec-Fetch-Site': 'cross-site',
  'Sec-Fetch-Mode': 'navigate',
  'Sec-Fetch-Dest': 'document',
  'User-Agent': 'browser',
  Accept: 'text/html',
  Prefer: 'wait=0',
};
