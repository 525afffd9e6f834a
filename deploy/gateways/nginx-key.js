// For nginx with the module njs: any text can be a key. Replaces the map of X-Api-Key in nginx.conf.

function key(request) {
  const apiKey = request.headersIn['X-Api-Key'];
  const name = apiKey ? `client:${apiKey}` : `address:${request.remoteAddress}`;
  return encodeURIComponent(name);
}

export default { key };
