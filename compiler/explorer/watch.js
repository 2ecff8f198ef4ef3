
// Served by `atlc explore --watch`: the page asks for the number of the latest version and reloads when it grows.
(async () => {
  let known = null;
  for (;;) {
    try {
      const version = await (await fetch('/version', { cache: 'no-store' })).text();
      if (known !== null && version !== known) location.reload();
      known = version;
    } catch { /* the server has gone: keep the page */ }
    await new Promise(done => setTimeout(done, 500));
  }
})();
