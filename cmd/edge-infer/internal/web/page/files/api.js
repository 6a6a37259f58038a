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
  const response = await request(path, options);
  if (!response.ok) throw new Error((await response.text()).trim());
  return response.json();
}

// sendJSON returns the answer, or throws the error that the server gives, word for word.
export async function sendJSON(method, path, value) {
  const response = await request(path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) });
  if (response.status === 204) return null;
  const text = await response.text();
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new Error(text.trim());
  }
  if (!response.ok) throw new Error(answer.error);
  return answer;
}
