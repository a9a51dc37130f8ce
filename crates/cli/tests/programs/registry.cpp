// Many races, many deadlocks, and names of thousands of characters: more than there is time to explain.
#include <map>
#include <string>
#include <thread>
#include <vector>
#include <functional>
#include <memory>
#include <unordered_map>
#include <mutex>
namespace company::product::subsystem::detail {
template <class K, class V, class Cmp = std::less<K>, class Alloc = std::allocator<std::pair<const K, V>>>
struct registry {
  std::map<K, V, Cmp, Alloc> m;
  std::mutex a, b;
  template <class F> void with(F &&f) { f(m); }
  V &at(const K &k) { return m[k]; }
  void ab() { std::scoped_lock l(a); std::lock_guard<std::mutex> g(b); hits++; }
  void ba() { std::lock_guard<std::mutex> l(b); std::lock_guard<std::mutex> g(a); hits++; }
  long hits = 0;
};
}
using R = company::product::subsystem::detail::registry<std::string, std::vector<std::function<std::shared_ptr<std::unordered_map<std::string, int>>(const std::string &, std::vector<int>)>>>;
int main() {
  R r;
  std::vector<std::thread> ts;
  for (int i = 0; i < 20; i++)
    ts.emplace_back([&r, i] {
      pthread_setname_np(pthread_self(), ("wörker-" + std::to_string(i)).c_str());
      r.with([&](auto &m) { m["k" + std::to_string(i % 3)].push_back({}); });
      if (i % 2) r.ab(); else r.ba();
    });
  for (auto &t : ts) t.join();
}
