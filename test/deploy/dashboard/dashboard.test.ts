import { useRedis } from '../../support/use-redis.js';
import { describeAccessForAll } from './access-for-all.js';
import { describeDetail } from './detail.js';
import { describeForeignPages, HOST_NAMES } from './foreign-pages.js';
import { describeList } from './list.js';
import { describeLists } from './lists.js';
import { describeLostFiles } from './lost-files.js';
import { describeOutage } from './outage.js';
import { describeTokens } from './token.js';
import { describeInBrowser, useBrowser } from './use-browser.js';

// One file, since a browser takes seconds to start.
describeInBrowser('in a browser,', () => {
  const redis = useRedis();
  const open = useBrowser(HOST_NAMES);

  describeList(open, redis);
  describeDetail(open, redis);
  describeLists(open, redis);
  describeTokens(open);
  describeOutage(open, redis);
  describeLostFiles(open);
  describeForeignPages(open);
  describeAccessForAll(open);
});
