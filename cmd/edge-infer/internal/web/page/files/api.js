// request calls the server. A server that wants a login gets one.
export async function request(path, options = {}) {
  const response = await fetch(path, options);
  if (response.status === 401) {
    location.assign("/login");
    return new Promise(() => {});
  }
  return response;
}

export async function getJSON(path, options = {}) {
  return (await exchange(path, options)).value;
}

// sendJSON returns the answer.
export async function sendJSON(method, path, value) {
  return (await exchange(path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) })).value;
}

// getVersioned returns a value and its version, for putVersioned.
export function getVersioned(path) {
  return exchange(path);
}

// putVersioned replaces what was read in that version, and returns the next version. It fails when somebody else was faster.
export async function putVersioned(path, version, value) {
  const headers = { "Content-Type": "application/json", "If-Match": version };
  return (await exchange(path, { method: "PUT", headers, body: JSON.stringify(value) })).version;
}

// exchange asks the server, or throws the error that it gives, word for word.
async function exchange(path, options = {}) {
  const response = await request(path, options);
  const text = response.status === 204 ? "null" : await response.text();
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(text.trim());
  }
  if (!response.ok) throw new Error(value.error);
  return { value, version: response.headers.get("ETag") };
}
