# SPDX-License-Identifier: Apache-2.0
# ractors.rb: Ractors that spin, at the same time, each with one known stack, which it prints itself before (tests/system/spins.py has the format).
Warning[:experimental] = false

def report(name, stack)
  lines = stack.map { |at| "#{at.label.tr(' ', '_')}\t#{at.path}\t#{at.lineno}\n" }
  $stdout.write("T #{File.readlink('/proc/thread-self')[/\d+$/]} #{name}\n#{lines.join}E\n")
  $stdout.flush
end

# On one line, so that it is the line of both.
def spin(name) report(name, caller_locations(0)); x = 0; x = (x + 1) % 7 while true; end
def nested(depth, name) depth > 0 ? nested(depth - 1, name) : spin(name); end

RACTORS = [
  Ractor.new { spin(:plain) },
  Ractor.new { nested(50, :nested) },
  Ractor.new { [2, 1].sort { |_, _| spin(:sorts) } },
  Ractor.new { [1].each { |_| { 1 => 2 }.each_pair { |_, _| spin(:blocks) } } },
  Ractor.new { Fiber.new { spin(:fiber) }.resume },
  Ractor.new { Thread.new { spin(:thread) }.join }
].freeze
sleep
