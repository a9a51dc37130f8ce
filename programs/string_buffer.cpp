// Shape: atomicity of an append. The length of the other buffer is read under its lock and its characters
// are copied under its lock, but not under a single acquisition of it.
// Idea: java.lang.StringBuffer.append of JDK 1.4 (Flanagan and Qadeer, PLDI 2003).
// Shows: the assertion, if the other buffer is cut in between.
// Fixed: holds the other buffer's lock from the question to the copy.
#include "selvedge.h"
#include "shape.h"
#include <mutex>
#include <string>
#include <thread>

class Buffer {
  public:
    explicit Buffer(const char *text) : text(text) {}

    size_t length() {
        std::lock_guard<std::recursive_mutex> guard(lock);
        return text.size();
    }

    std::string first(size_t count) {
        std::lock_guard<std::recursive_mutex> guard(lock);
        assert(count <= text.size());
        return text.substr(0, count);
    }

    void clear() {
        std::lock_guard<std::recursive_mutex> guard(lock);
        text.clear();
    }

    void append(Buffer &other) {
        SELVEDGE_ATOMIC_BEGIN("append");
        std::string copy;
        {
#ifdef FIXED
            std::lock_guard<std::recursive_mutex> theirs(other.lock);
#endif
            size_t count = other.length();
            copy = other.first(count);
        }
        {
            std::lock_guard<std::recursive_mutex> guard(lock);
            text += copy;
        }
        SELVEDGE_REGION_END();
    }

  private:
    std::recursive_mutex lock;
    std::string text;
};

int main() {
    static Buffer ours("abc"), theirs("defghi");
    std::thread appender([] {
        ours.append(theirs);
        note(20);
    });
    work(250);
    std::thread eraser([] {
        note(20);
        theirs.clear();
    });
    appender.join();
    eraser.join();
    return 0;
}
