// request calls the server and goes to the login page when it answers 401.
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

// sendJSON sends a value and returns the response.
export async function sendJSON(method, path, value) {
  return (await exchange(path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) })).value;
}

// getVersioned returns a value and its version, for putVersioned.
export function getVersioned(path) {
  return exchange(path);
}

// putVersioned replaces a value that was read with this version, and returns the next version. It fails if the value has changed since.
export async function putVersioned(path, version, value) {
  const headers = { "Content-Type": "application/json", "If-Match": version };
  return (await exchange(path, { method: "PUT", headers, body: JSON.stringify(value) })).version;
}

// exchange sends a request and returns the response, or throws the server's error message.
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
